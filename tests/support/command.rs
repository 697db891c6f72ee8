//! Running the command line and reading what it says.

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use serde_json::Value;

use super::clock::{LONG, eventually};
use super::processes::{self, Signal};

/// What a finished command said.
#[derive(Debug)]
pub struct Outcome {
    /// Exit code; a signal's number plus 128 when one ended it.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// From start to end.
    pub took: Duration,
}

impl Outcome {
    /// The one JSON object on standard output.
    ///
    /// # Panics
    /// When standard output is anything else.
    pub fn json(&self) -> Value {
        serde_json::from_str(self.out.trim())
            .unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }

    /// The object of a command that must have succeeded.
    pub fn done(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        self.json()
    }

    /// The code of the error of a command that must have been refused.
    pub fn refused(&self) -> String {
        assert_eq!(self.code, 1, "{self:?}");
        let said = self.json();
        assert_eq!(said["ok"], false, "{self:?}");
        said["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// A command that runs beside the test. Killed when dropped.
pub struct Running {
    child: Child,
    started: Instant,
    out: Output,
    err: Output,
    /// How many bytes of the standard output were looked through for JSON, and what was found.
    said: Mutex<(usize, Vec<Value>)>,
}

impl Running {
    /// Starts `command` with both outputs collected.
    pub fn start(command: &mut Command) -> Self {
        Self::spawn(command.stdin(Stdio::null()))
    }

    /// Starts `command` with both outputs collected, and its input to write to.
    pub fn start_with_input(command: &mut Command) -> (Self, ChildStdin) {
        let mut running = Self::spawn(command.stdin(Stdio::piped()));
        let input = running.child.stdin.take().expect("piped");
        (running, input)
    }

    fn spawn(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command.spawn().expect("the program starts");
        let out = Output::collect(child.stdout.take().expect("piped"));
        let err = Output::collect(child.stderr.take().expect("piped"));
        Self {
            child,
            started,
            out,
            err,
            said: Mutex::default(),
        }
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// What it has written to standard output so far.
    pub fn out(&self) -> String {
        self.out.text()
    }

    /// What it has written to standard error so far.
    pub fn err(&self) -> String {
        self.err.text()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        processes::signal(self.pid(), signal);
    }

    /// The first JSON object it prints that satisfies `wanted`.
    pub fn line(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let asked = Instant::now();
        loop {
            if let Some(found) = self.said(&wanted) {
                return found;
            }
            assert!(
                asked.elapsed() < LONG,
                "not within {LONG:?}: {what}; said: {}{}",
                self.out(),
                self.err()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The first such object among those that it has printed so far. No line is read twice: there may be thousands,
    /// and some are megabytes long.
    fn said(&self, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        let mut said = self.said.lock().expect("no panic while reading");
        let (read, values) = &mut *said;
        let out = self.out.read.lock().expect("no panic while reading");
        while let Some(length) = out[*read..].iter().position(|byte| *byte == b'\n') {
            values.extend(serde_json::from_slice::<Value>(&out[*read..*read + length]).ok());
            *read += length + 1;
        }
        values.iter().find(|value| wanted(value)).cloned()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it has not ended within `bound`.
    pub fn finish(mut self, bound: Duration) -> Outcome {
        let asked = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("waiting") {
                break status;
            }
            assert!(
                asked.elapsed() < bound,
                "still runs: {}{}",
                self.out(),
                self.err()
            );
            thread::sleep(Duration::from_millis(2));
        };
        let took = self.started.elapsed();
        // A process left behind may keep the pipes open: what came until now is what counts then.
        for output in [&self.out, &self.err] {
            eventually("all that was written is read", LONG, || {
                output.is_all().then_some(())
            });
        }
        let signalled = std::os::unix::process::ExitStatusExt::signal(&status);
        let code = status
            .code()
            .or_else(|| signalled.map(|number| number + 128))
            .unwrap_or(-1);
        Outcome {
            code,
            signal: signalled,
            out: self.out(),
            err: self.err(),
            took,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a command writes to one of its outputs.
struct Output {
    /// The end that is read from.
    pipe: OwnedFd,
    /// Held while anything is read, so that nothing is on its way from the pipe to here.
    read: Arc<Mutex<Vec<u8>>>,
}

impl Output {
    /// Collects all that comes from now on.
    fn collect(from: impl Read + AsFd + Send + 'static) -> Self {
        let pipe = from.as_fd().try_clone_to_owned().expect("a second handle");
        let read = Arc::default();
        let into = Arc::clone(&read);
        thread::spawn(move || collect(from, &into));
        Self { pipe, read }
    }

    /// What has been read so far.
    fn text(&self) -> String {
        let read = self.read.lock().expect("no panic while reading");
        String::from_utf8_lossy(&read).into_owned()
    }

    /// Whether all that was written so far has been read.
    fn is_all(&self) -> bool {
        let _read = self.read.lock().expect("no panic while reading");
        rustix::io::ioctl_fionread(&self.pipe).expect("a pipe") == 0
    }
}

fn collect(mut from: impl Read + AsFd, into: &Mutex<Vec<u8>>) {
    let mut piece = [0; 8192];
    loop {
        if poll(&mut [PollFd::new(&from, PollFlags::IN)], None).is_err() {
            continue;
        }
        let mut all = into.lock().expect("no panic while reading");
        // It does not wait, since something is there or the end.
        let Ok(read @ 1..) = from.read(&mut piece) else {
            return;
        };
        all.extend_from_slice(&piece[..read]);
    }
}
