//! SIGKILL of the controller, while the person's viewer goes on sending.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, ExitCode, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use handover_protocol::Method;
use serde_json::{Value, json};

use super::takeover::until_active;
use crate::{
    Outcome,
    figures::{Row, Samples},
    place::text,
    rfb::Viewer,
    screen::{Screen, What},
    session::{Session, viewer},
    wire::Wire,
};

/// The first argument with which this program is a controller, to be killed.
pub const HOLD: &str = "--hold";

/// How long the person goes on after an agent could act again.
const AFTER: Duration = Duration::from_millis(200);

/// The time from the kill to the last input that arrived, and to the agents' next permit.
pub fn measure() -> Outcome<Vec<Row>> {
    let session = Session::up("1280x800")?;
    let seen = Screen::cover(&session.display()?)?.watch()?;
    let (wire, agent) = (session.wire()?, session.wire()?);
    let mut free = Samples::default();
    let dead = Samples::take(30, || {
        let (socket, name) = viewer(&wire, "d1")?;
        let mut person = Viewer::connect(&socket)?;
        let mut controller = Controller::start(&session.socket()?, &name)?;
        let stop = AtomicBool::new(false);
        let (killed, freed) = thread::scope(|scope| {
            scope.spawn(|| wiggle(&mut person, &stop));
            let killed = first_motion(&seen).and_then(|()| controller.kill());
            let freed = until_active(&agent).map(|()| Instant::now());
            thread::sleep(AFTER);
            stop.store(true, Ordering::Relaxed);
            (killed, freed)
        });
        let killed = killed?;
        free.push(freed? - killed);
        let motions = seen.try_iter().filter(|event| event.what == What::Motion);
        let last = motions.map(|event| event.at).max();
        Ok::<_, crate::Failure>(last.map_or(Duration::ZERO, |last| last.duration_since(killed)))
    })?;
    Ok(vec![
        Row::times(
            "SIGKILL of the controller, to the last input delivered",
            dead,
        )
        .below(Duration::from_millis(10)),
        Row::times("SIGKILL of the controller, until an agent may act", free),
    ])
}

/// Waits until the person's input arrives.
fn first_motion(seen: &std::sync::mpsc::Receiver<crate::screen::Seen>) -> Outcome<()> {
    while seen.recv_timeout(Duration::from_secs(5))?.what != What::Motion {}
    Ok(())
}

/// Moves the pointer to and fro, some thousand times a second, until told to stop.
fn wiggle(person: &mut Viewer, stop: &AtomicBool) {
    for no in 0_u16.. {
        let sent = person.pointer(0, 100 + no % 50, 100);
        if sent.is_err() || stop.load(Ordering::Relaxed) {
            return;
        }
        thread::sleep(Duration::from_micros(300));
    }
}

/// A process that holds a lease.
struct Controller(Child);

impl Controller {
    fn start(socket: &Path, viewer: &Value) -> Outcome<Self> {
        let viewer = viewer.as_str().ok_or("a viewer without a name")?;
        let mut child = Command::new(std::env::current_exe()?)
            .args([HOLD, text(socket)?, viewer])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("no pipe")?;
        let controller = Self(child);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        if line.trim() == "held" {
            Ok(controller)
        } else {
            Err("no control to hold".into())
        }
    }

    /// Kills it, and tells the instant before.
    fn kill(&mut self) -> Outcome<Instant> {
        let at = Instant::now();
        self.0.kill()?;
        self.0.wait()?;
        Ok(at)
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Is that process: acquires control for a viewer, says so, and waits for the end of its input.
pub fn hold(arguments: &[String]) -> ExitCode {
    let held = || -> Outcome<()> {
        let [socket, viewer] = arguments else {
            return Err("a socket and a viewer".into());
        };
        let wire = Wire::connect(Path::new(socket))?;
        let params = json!({"desktop": "d1", "viewer": viewer});
        wire.call(Method::ControlAcquire, params)?;
        println!("held");
        std::io::stdin().read_to_end(&mut Vec::new())?;
        Ok(())
    };
    match held() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
