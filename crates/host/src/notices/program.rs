//! The notifier: a plain child of the host that gets notices on its standard input and ends with it. On its standard
//! output it says which of them it has dealt with.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep_until, timeout};

use super::Queue;
use super::receipts::Receipts;

/// How long the notifier may take to read a line. Its pipe holds several.
const READS_WITHIN: Duration = Duration::from_secs(10);

/// How long its end may take once it was killed, and what it said last.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

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

impl NotifierProgram {
    async fn is_wanted(&self) -> bool {
        tokio::task::spawn_blocking(self.wanted)
            .await
            .unwrap_or(false)
    }
}

/// Feeds the notifier from the queue for as long as this is polled. It is started with the first notice, and again
/// when it has ended and something is open; `log` gets what it says of itself.
pub async fn feed(program: NotifierProgram, queue: Arc<Queue>, log: PathBuf) {
    let mut pause = AGAIN.0;
    loop {
        queue.more().await;
        if !program.is_wanted().await {
            queue.open().pass_over();
            continue;
        }
        let given_up = match start(&program, &log) {
            Ok(mut notifier) => {
                let why = notifier.serve(&program, &queue).await;
                tracing::warn!("the notifier has to be started anew: {why}");
                notifier.end(&queue).await;
                if notifier.has_told {
                    pause = AGAIN.0;
                }
                queue.open().ended()
            }
            Err(error) => {
                tracing::warn!(%error, "the notifier cannot be started");
                queue.open().not_started()
            }
        };
        if given_up > 0 {
            tracing::warn!(given_up, "notices are given up: no notifier has told them");
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(AGAIN.1);
    }
}

/// One that runs. Dropping it kills it.
struct Notifier {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    receipts: Receipts,
    /// Whether it has dealt with a notice.
    has_told: bool,
}

/// What is being written to it.
struct Line {
    bytes: Vec<u8>,
    written: usize,
    until: Instant,
}

impl Notifier {
    /// Hands over what there is and hears what is told, until it has ended or is of no use; then says why.
    async fn serve(&mut self, program: &NotifierProgram, queue: &Queue) -> String {
        let mut line: Option<Line> = None;
        let mut said = [0; 512];
        loop {
            let until = line.as_ref().map(|line| line.until);
            let left = line.as_ref().map(|line| &line.bytes[line.written..]);
            tokio::select! {
                // What it has read and said counts before how long that took: the host may have been held up too.
                biased;
                ended = self.child.wait() => return match ended {
                    Ok(status) => status.to_string(),
                    Err(error) => error.to_string(),
                },
                read = self.output.read(&mut said) => match read {
                    Ok(0) => return "it has closed its output".to_owned(),
                    Ok(count) => self.heard(&said[..count], queue),
                    Err(error) => return error.to_string(),
                },
                written = self.input.write(left.unwrap_or_default()), if left.is_some() => match written {
                    Ok(count) => line = line.and_then(|line| line.after(count)),
                    Err(error) => return error.to_string(),
                },
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                    return "it does not read".to_owned();
                }
                () = queue.more(), if line.is_none() => {
                    if program.is_wanted().await {
                        line = next(queue);
                    } else {
                        queue.open().pass_over();
                    }
                }
            }
        }
    }

    fn heard(&mut self, said: &[u8], queue: &Queue) {
        for number in self.receipts.heard(said) {
            self.has_told |= queue.open().told(number);
        }
    }

    /// Makes sure that it has ended, and hears what it said before.
    async fn end(&mut self, queue: &Queue) {
        // One that has ended already is meant to.
        let _ = self.child.start_kill();
        let mut said = [0; 512];
        let hearing = async {
            let _ = self.child.wait().await;
            while let Ok(count @ 1..) = self.output.read(&mut said).await {
                self.heard(&said[..count], queue);
            }
        };
        let _ = timeout(ENDS_WITHIN, hearing).await;
    }
}

impl Line {
    /// What is left of it when `count` more bytes were written.
    fn after(mut self, count: usize) -> Option<Self> {
        self.written += count;
        (self.written < self.bytes.len()).then_some(self)
    }
}

/// The line for the next notice.
fn next(queue: &Queue) -> Option<Line> {
    let handed = queue.hand_over()?;
    // Texts and numbers can always be written as JSON.
    let mut bytes = serde_json::to_vec(&handed).ok()?;
    bytes.push(b'\n');
    Some(Line {
        bytes,
        written: 0,
        until: Instant::now() + READS_WITHIN,
    })
}

fn start(program: &NotifierProgram, log: &Path) -> io::Result<Notifier> {
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
        .stdout(Stdio::piped())
        .stderr(log)
        .kill_on_drop(true);
    let mut child = command.spawn()?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("it has no standard input and output"));
    };
    Ok(Notifier {
        child,
        input,
        output,
        receipts: Receipts::default(),
        has_told: false,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{About, Notices};
    use super::*;
    use crate::system::process::Stat;

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

    /// Reads a line, and says that it has dealt with it.
    const DEALS: &str =
        r#"deal() { read -r line || exit; echo "$line" >> said; n=${line#*:}; echo "${n%%,*}"; }"#;

    /// Feeds a shell with this script, which runs in `dir`.
    fn feeding(script: &str, dir: &Path, queue: Arc<Queue>) -> tokio::task::JoinHandle<()> {
        let script = format!("cd {} && {DEALS}; {script}", dir.display());
        tokio::spawn(feed(shell(&script, || true), queue, dir.join("log")))
    }

    async fn nothing_is_open(queue: &Queue) {
        let waiting = async {
            while queue.open().len() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), waiting).await.unwrap();
    }

    #[tokio::test]
    async fn one_that_ends_is_started_again() {
        let dir = tempfile::tempdir().unwrap();
        let (notices, queue) = Notices::new("s1".into(), "shop".to_owned());
        let feeding = feeding("deal", dir.path(), queue.clone());
        for number in 1..=2 {
            notices.give(request(number));
            let said = lines(&dir.path().join("said"), number).await;
            assert!(
                said[number - 1].contains(&format!("\"r{number}\"")),
                "{said:?}"
            );
        }
        nothing_is_open(&queue).await;
        feeding.abort();
    }

    #[tokio::test]
    async fn what_one_had_when_it_died_is_handed_over_again() {
        let dir = tempfile::tempdir().unwrap();
        let (notices, queue) = Notices::new("s1".into(), "shop".to_owned());
        for number in 1..=4 {
            notices.give(request(number));
        }
        // The first deals with one of three and dies; what it said just before counts.
        let script = "if mkdir first; then read -r a; deal; read -r b; kill -KILL $$; fi; while :; do deal; done";
        let feeding = feeding(script, dir.path(), queue.clone());
        nothing_is_open(&queue).await;
        let said = lines(&dir.path().join("said"), 4).await;
        let order = ["r2", "r1", "r3", "r4"];
        assert_eq!(said.len(), order.len(), "{said:?}");
        for (line, id) in said.iter().zip(order) {
            assert!(line.contains(&format!("\"{id}\"")), "{said:?}");
        }
        feeding.abort();
    }

    #[tokio::test]
    async fn its_end_is_the_end_of_the_notifier() {
        let dir = tempfile::tempdir().unwrap();
        let (notices, queue) = Notices::new("s1".into(), "shop".to_owned());
        notices.give(request(1));
        let script = "read -r line; mkfifo held; echo $$ > pid; exec cat held";
        let feeding = feeding(script, dir.path(), queue);
        let pid: u32 = lines(&dir.path().join("pid"), 1).await[0].parse().unwrap();
        feeding.abort();
        let ending = async {
            while Stat::of(pid).is_ok_and(|stat| stat.is_living()) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), ending).await.unwrap();
    }

    #[tokio::test]
    async fn what_nobody_wants_is_not_passed_on() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let (notices, queue) = Notices::new("s1".into(), "shop".to_owned());
        notices.give(request(1));
        let feeding = tokio::spawn(feed(shell("exit 0", || false), queue.clone(), log.clone()));
        nothing_is_open(&queue).await;
        feeding.abort();
        let _ = feeding.await;
        assert!(!log.exists());
    }
}
