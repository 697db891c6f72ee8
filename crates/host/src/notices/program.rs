//! The notifier: a plain child of the host that gets notices on its standard input and ends with it.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, sleep_until, timeout};

use super::{Notice, Queue};

/// How long the notifier may take to read a line. Its pipe holds several.
const READS_WITHIN: Duration = Duration::from_secs(10);

/// How often it is started for one notice.
const TRIES: u32 = 5;

/// How long it is waited before it is started again at first, and at most.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The program that tells people, and whether they want that.
#[derive(Clone, Debug)]
pub struct NotifierProgram {
    /// The executable.
    pub exe: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Asked before each notice. It may read a file.
    pub wanted: fn() -> bool,
}

/// Feeds the notifier from the queue for as long as this is polled. It is started with the first notice, and again
/// when it has ended; `log` gets what it says of itself.
pub async fn feed(program: NotifierProgram, queue: Arc<Queue>, log: PathBuf) {
    let mut notifier = Notifier {
        program,
        log,
        running: None,
        pause: AGAIN.0,
        not_before: Instant::now(),
    };
    loop {
        let notice = queue.next().await;
        let wanted = notifier.program.wanted;
        if tokio::task::spawn_blocking(wanted).await.unwrap_or(false) {
            notifier.tell(&notice).await;
        }
    }
}

struct Notifier {
    program: NotifierProgram,
    log: PathBuf,
    running: Option<(Child, ChildStdin)>,
    /// How long it is waited after its next end.
    pause: Duration,
    not_before: Instant,
}

impl Notifier {
    async fn tell(&mut self, notice: &Notice) {
        // Texts and numbers can always be written as JSON.
        let Ok(mut line) = serde_json::to_vec(notice) else {
            return;
        };
        line.push(b'\n');
        for _ in 0..TRIES {
            match self.write(&line).await {
                Ok(()) => {
                    self.pause = AGAIN.0;
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "the notifier has to be started anew");
                    // Dropping it kills it.
                    self.running = None;
                    self.not_before = Instant::now() + self.pause;
                    self.pause = (self.pause * 2).min(AGAIN.1);
                }
            }
        }
        tracing::warn!("a notice is given up: the notifier does not run");
    }

    async fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let has_ended =
            |(child, _): &mut (Child, ChildStdin)| !matches!(child.try_wait(), Ok(None));
        if self.running.as_mut().is_some_and(has_ended) {
            self.running = None;
        }
        let (_, input) = match &mut self.running {
            Some(running) => running,
            none => {
                sleep_until(self.not_before).await;
                none.insert(start(&self.program, &self.log)?)
            }
        };
        match timeout(READS_WITHIN, input.write_all(line)).await {
            Ok(written) => written,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "it does not read")),
        }
    }
}

fn start(program: &NotifierProgram, log: &Path) -> io::Result<(Child, ChildStdin)> {
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(log)?;
    let mut command = Command::new(&program.exe);
    command
        .arg0("handover")
        .args(&program.args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true);
    let mut child = command.spawn()?;
    let input = child.stdin.take();
    let input = input.ok_or_else(|| io::Error::other("it has no standard input"))?;
    Ok((child, input))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{About, Notices};
    use super::*;

    fn shell(script: &str, wanted: fn() -> bool) -> NotifierProgram {
        NotifierProgram {
            exe: "/bin/sh".into(),
            args: ["-c", script].map(OsString::from).to_vec(),
            wanted,
        }
    }

    fn request(number: usize) -> About {
        About::RequestHuman {
            request_id: handover_protocol::RequestId(format!("r{number}")),
            desktop: None,
            agent: None,
            reason: "x".to_owned(),
            question: None,
        }
    }

    async fn lines(path: &Path, count: usize) -> Vec<String> {
        let waiting = async {
            loop {
                let text = fs::read_to_string(path).unwrap_or_default();
                if text.lines().count() >= count {
                    return text.lines().map(str::to_owned).collect();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), waiting).await.unwrap()
    }

    #[tokio::test]
    async fn one_that_ends_is_started_again() {
        let dir = tempfile::tempdir().unwrap();
        let said = dir.path().join("said");
        // Reads one notice and ends.
        let script = format!("read line; echo \"$line\" >> {}", said.display());
        let (notices, queue) = Notices::new("s1".into(), "shop".to_owned());
        let log = dir.path().join("log");
        let feeding = tokio::spawn(feed(shell(&script, || true), queue, log));
        for number in 1..=2 {
            notices.give(request(number));
            let said = lines(&said, number).await;
            assert!(
                said[number - 1].contains(&format!("\"r{number}\"")),
                "{said:?}"
            );
        }
        feeding.abort();
    }

    #[tokio::test]
    async fn what_nobody_wants_is_not_passed_on() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let (notices, queue) = Notices::new("s1".into(), "shop".to_owned());
        notices.give(request(1));
        let feeding = tokio::spawn(feed(shell("exit 0", || false), queue.clone(), log.clone()));
        while !queue.waiting().is_empty() {
            tokio::task::yield_now().await;
        }
        feeding.abort();
        let _ = feeding.await;
        assert!(!log.exists());
    }
}
