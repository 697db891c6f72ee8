//! What people are told beyond the clients of the host: that an agent asks for them, and that their control is
//! about to end.
//!
//! The host opens no network connection. It hands notices to a program of its own, the notifier, which does.
//! Giving a notice never waits: there is a short queue, and what is oldest in it is lost first. A notice stays in it
//! until the notifier says that it is dealt with, so none is lost when a notifier dies; one may be told twice then.

mod open;
mod program;
mod receipts;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handover_protocol::{AgentId, DesktopId, Limit, RequestId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

pub use program::{NotifierProgram, feed};

use self::open::Open;
use crate::system::clock;

/// The longest reason or question that is passed on, in characters.
const LONGEST: usize = 1000;

/// A notice as the notifier reads it, one a line, as JSON. It writes the number on a line of its own when the notice
/// need not be handed over again: it was told, is not wanted, or was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handed {
    /// Which notice of this host it is. One that is handed over again keeps it.
    pub number: u64,
    /// What is to be told.
    #[serde(flatten)]
    pub notice: Notice,
}

/// Something that a person is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// The session.
    pub session: SessionId,
    /// Its name for people.
    pub session_name: String,
    /// When it came to that.
    pub at: Timestamp,
    /// What it came to.
    #[serde(flatten)]
    pub about: About,
}

/// What a person is told of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum About {
    /// An agent asks for a person.
    RequestHuman {
        /// The request.
        request_id: RequestId,
        /// The desktop that it is about, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        desktop: Option<DesktopId>,
        /// Who asks, if it is an agent that the host knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        /// Why; written by an agent, so not to be trusted.
        reason: String,
        /// What can be answered in text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<String>,
    },
    /// A person's control is about to end by a limit.
    LeaseWarning {
        /// The desktop.
        desktop: DesktopId,
        /// Who has control, in words.
        holder: String,
        /// What is about to end it.
        limit: Limit,
        /// Until then, in milliseconds.
        left_ms: u64,
    },
}

/// Where notices of one session are given.
#[derive(Clone, Debug)]
pub struct Notices {
    session: SessionId,
    session_name: String,
    queue: Arc<Queue>,
}

/// The notices that are not told yet.
#[derive(Debug, Default)]
pub struct Queue {
    open: Mutex<Open>,
    more: Notify,
}

impl Notices {
    /// For this session; the other end is for [`feed`].
    pub fn new(session: SessionId, session_name: String) -> (Self, Arc<Queue>) {
        let queue = Arc::new(Queue::default());
        let notices = Self {
            session,
            session_name,
            queue: queue.clone(),
        };
        (notices, queue)
    }

    /// Gives a notice. Does not wait.
    pub fn give(&self, about: About) {
        self.queue.put(Notice {
            session: self.session.clone(),
            session_name: self.session_name.clone(),
            at: clock::wall(),
            about: shortened(about),
        });
    }
}

/// Without what would be too long for a line, or for anyone to read.
fn shortened(about: About) -> About {
    let cut = |text: String| text.chars().take(LONGEST).collect();
    match about {
        About::RequestHuman {
            request_id,
            desktop,
            agent,
            reason,
            question,
        } => About::RequestHuman {
            request_id,
            desktop,
            agent,
            reason: cut(reason),
            question: question.map(cut),
        },
        warning @ About::LeaseWarning { .. } => warning,
    }
}

impl Queue {
    fn put(&self, notice: Notice) {
        if self.open().add(notice, clock::now()) {
            tracing::warn!("the notifier does not keep up: its oldest notice is lost");
        }
        self.more.notify_one();
    }

    /// Waits until there is something that the notifier does not have.
    async fn more(&self) {
        while !self.open().has_more() {
            self.more.notified().await;
        }
    }

    /// The next for the notifier, if there still is one.
    fn hand_over(&self) -> Option<Handed> {
        self.open().hand_over(clock::now())
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // Nothing panics while it holds this lock.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: usize, reason: &str) -> About {
        About::RequestHuman {
            request_id: RequestId(format!("r{number}")),
            desktop: Some("d1".into()),
            agent: None,
            reason: reason.to_owned(),
            question: None,
        }
    }

    #[test]
    fn a_line_is_short_whatever_an_agent_writes() {
        let (notices, queue) = Notices::new("s1".into(), "shop".to_owned());
        notices.give(request(1, &"\u{1f600}\n".repeat(8000)));
        let handed = queue.hand_over().unwrap();
        let line = serde_json::to_string(&handed).unwrap();
        assert!(line.len() < 8000 && !line.contains('\n'), "{}", line.len());
        let read: Handed = serde_json::from_str(&line).unwrap();
        assert_eq!(read, handed);
        assert_eq!((read.number, &*read.notice.session_name), (1, "shop"));
    }

    #[test]
    fn a_warning_reads_as_it_was_written() {
        let (notices, queue) = Notices::new("s1".into(), "shop".to_owned());
        notices.give(About::LeaseWarning {
            desktop: "d1".into(),
            holder: "ada".to_owned(),
            limit: Limit::Maximum,
            left_ms: 60_000,
        });
        let handed = queue.hand_over().unwrap();
        let line = serde_json::to_string(&handed).unwrap();
        assert_eq!(serde_json::from_str::<Handed>(&line).unwrap(), handed);
    }
}
