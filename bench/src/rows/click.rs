//! An agent's click, until an application has it.

use std::{
    sync::mpsc::Receiver,
    time::{Duration, Instant},
};

use handover_protocol::Method;
use serde_json::json;

use crate::{
    Outcome,
    figures::{Row, Samples},
    place::finish,
    screen::{Screen, Seen, What},
    session::Session,
};

/// How long the event of one click may take.
const SEEN: Duration = Duration::from_secs(5);

/// Over the socket until seen, over the socket until answered, and as a process.
pub fn measure() -> Outcome<Vec<Row>> {
    let session = Session::up("1280x800")?;
    let seen = Screen::cover(&session.display()?)?.watch()?;
    let wire = session.wire()?;
    let mut answered = Samples::default();
    let until_seen = Samples::take(500, || {
        let started = Instant::now();
        wire.call(
            Method::DesktopClick,
            json!({"desktop": "d1", "x": 300, "y": 300}),
        )?;
        answered.push(started.elapsed());
        press(&seen, started)
    })?;
    let process = Samples::take(200, || {
        let started = Instant::now();
        let mut command = session.place().handover()?;
        finish(command.args(["desktop", "click", "300", "300"]), SEEN)?;
        let took = started.elapsed();
        press(&seen, started)?;
        Ok::<_, crate::Failure>(took)
    })?;
    Ok(vec![
        Row::times(
            "desktop.click over the socket, until the X client sees it",
            until_seen,
        )
        .below(Duration::from_millis(1)),
        Row::times("desktop.click over the socket, until answered", answered),
        Row::times(
            "`handover desktop click` as a process, start to exit",
            process,
        )
        .below(Duration::from_millis(15)),
    ])
}

/// The time from `started` to the press that followed.
fn press(seen: &Receiver<Seen>, started: Instant) -> Outcome<Duration> {
    loop {
        let event = seen.recv_timeout(SEEN)?;
        if event.what == What::Press && event.at > started {
            return Ok(event.at - started);
        }
    }
}
