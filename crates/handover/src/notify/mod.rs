//! `handover notifier`, a hidden face of the program: tells people what the host gives it a line at a time.
//!
//! The host starts it, and it ends with the host: the end of its standard input is the end of it. It reads the
//! configuration for every notice, so that a change counts at once. On its standard output it says which notices it has
//! dealt with; the others are given to the next notifier if this one dies.

mod bus;
mod desktop;
mod log;
mod message;
mod queue;
mod receipt;
mod retry;
pub mod terminal;
pub mod token;
mod webhook;
mod wire;

use std::io::{self, BufRead, Read};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use handover_host::notices::{About, Handed, Notice, NotifierProgram};
use handover_host::system::prctl;
use tracing_subscriber::util::SubscriberInitExt;

use self::message::Message;
use self::queue::Queue;
use self::receipt::{Numbers, Receipt};
use crate::config::{Config, Notify, Occasion};
use crate::relay::redact::Redactor;

/// The word after the program's name.
pub const SUBCOMMAND: &str = "notifier";

/// The longest line, in bytes.
const LONGEST: u64 = 64 << 10;

/// How long after what it warns of a warning is still told.
const LATE: Duration = Duration::from_secs(10);

/// A notice in the words that people get, with the settings that hold for it.
#[derive(Clone, Debug)]
pub struct Job {
    notify: Notify,
    notice: Notice,
    message: Message,
    /// When it came here.
    came: Instant,
    /// Dropped with the last of its clones, which says that the notice is dealt with.
    _receipt: Arc<Receipt>,
}

impl Job {
    /// Whether it comes too late to be told at `now`: what it warns of happened a while ago.
    fn is_late(&self, now: Instant) -> bool {
        match self.notice.about {
            About::LeaseWarning { left_ms, .. } => {
                let since = now.saturating_duration_since(self.came);
                since > Duration::from_millis(left_ms) + LATE
            }
            About::RequestHuman { .. } => false,
        }
    }
}

/// How a host starts its notifier: this very program, also when its file was replaced meanwhile.
pub fn program() -> NotifierProgram {
    NotifierProgram {
        exe: PathBuf::from("/proc/self/exe"),
        args: vec![SUBCOMMAND.into()],
        wanted,
    }
}

/// Whether the configuration asks for notices that a notifier gives.
fn wanted() -> bool {
    let (config, _) = Config::load_or_default();
    !config.notify.on.is_empty() && (config.notify.desktop || config.notify.url.is_some())
}

/// Is the notifier until its standard input ends.
pub fn main() -> ExitCode {
    // A token passes through this process: no other one may read its memory. Where the kernel does not allow it,
    // nothing is worse than before.
    let _ = prctl::forbid_dumps();
    // Nothing else logs in this process.
    let _ = tracing_subscriber::fmt()
        .with_writer(|| log::Log)
        .with_ansi(false)
        .with_env_filter("handover=info")
        .finish()
        .try_init();
    let posts = Arc::new(Queue::new("webhook"));
    let shows = Arc::new(Queue::new("desktop"));
    let posting = posts.clone();
    work(move || webhook::run(&posting));
    let showing = shows.clone();
    work(move || desktop::run(&showing));
    let numbers = Arc::new(Numbers::new(io::stdout()));
    let heard = |handed: Handed| {
        let receipt = Receipt::new(handed.number, numbers.clone());
        pass_on(handed.notice, receipt, &posts, &shows);
    };
    match read(io::stdin().lock(), heard) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "the host cannot be heard any more");
            ExitCode::FAILURE
        }
    }
}

/// Starts what tells people in one way. It ends with the process, whatever it is waiting for, and the process with it:
/// if it ever fails, the host has to start another notifier.
fn work(way: impl FnOnce() + Send + 'static) {
    thread::spawn(move || {
        let _ = panic::catch_unwind(AssertUnwindSafe(way));
        process::exit(1);
    });
}

/// Reads notices until there are no more. A line that is none is left out.
fn read(mut lines: impl BufRead, mut heard: impl FnMut(Handed)) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = lines.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
        if count == 0 {
            return Ok(());
        }
        match serde_json::from_slice(&line) {
            Ok(handed) => heard(handed),
            Err(error) => tracing::warn!(%error, "what the host said is no notice"),
        }
    }
}

/// Without what looks like a credential: an agent may ask permission for a command that holds one.
fn without_secrets(mut notice: Notice) -> Notice {
    if let About::RequestHuman {
        reason, question, ..
    } = &mut notice.about
    {
        let redactor = Redactor::new([]);
        *reason = redactor.clean(reason);
        *question = question.as_deref().map(|question| redactor.clean(question));
    }
    notice
}

fn pass_on(notice: Notice, receipt: Receipt, posts: &Queue, shows: &Queue) {
    let notice = without_secrets(notice);
    let (config, trouble) = Config::load_or_default();
    if let Some(trouble) = trouble {
        tracing::warn!("the configuration is not used: {trouble}");
    }
    let occasion = match notice.about {
        About::RequestHuman { .. } => Occasion::RequestHuman,
        About::LeaseWarning { .. } => Occasion::LeaseWarning,
    };
    let notify = config.notify;
    if !notify.on.contains(&occasion) {
        return;
    }
    let job = Job {
        message: Message::of(&notice),
        notice,
        notify,
        came: Instant::now(),
        _receipt: Arc::new(receipt),
    };
    if job.notify.url.is_some() {
        posts.put(job.clone());
    }
    if job.notify.desktop {
        shows.put(job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_stay_here() {
        let mut notice = message::tests::request();
        if let About::RequestHuman { question, .. } = &mut notice.about {
            *question = Some("run deploy --password=SECRET".to_owned());
        }
        let notice = without_secrets(notice);
        let told = serde_json::to_string(&notice).unwrap() + &Message::of(&notice).text;
        assert!(
            told.contains("run deploy") && !told.contains("SECRET"),
            "{told}"
        );
    }

    #[test]
    fn a_warning_is_not_told_long_after() {
        let came = Instant::now();
        let job = |about| {
            let notice = Notice {
                about,
                ..message::tests::request()
            };
            Job {
                notify: Notify::default(),
                message: Message::of(&notice),
                notice,
                came,
                _receipt: receipt::tests::Told::default().receipt(1),
            }
        };
        let warning = job(About::LeaseWarning {
            desktop: "d1".into(),
            holder: "ada".to_owned(),
            limit: handover_protocol::Limit::Idle,
            left_ms: 15_000,
        });
        let after = |seconds| came + Duration::from_secs(seconds);
        assert!(!warning.is_late(after(25)));
        assert!(warning.is_late(after(26)));
        assert!(!job(message::tests::request().about).is_late(after(600)));
    }

    #[test]
    fn what_is_no_notice_is_left_out() {
        let handed = Handed {
            number: 7,
            notice: message::tests::request(),
        };
        let line = serde_json::to_string(&handed).unwrap();
        let long = "x".repeat(200_000);
        let text = format!("{{}}\n{line}\n{long}\n\u{0}\n{line}");
        let mut heard = Vec::new();
        read(text.as_bytes(), |handed| heard.push(handed)).unwrap();
        assert_eq!(heard, [handed.clone(), handed]);
    }
}
