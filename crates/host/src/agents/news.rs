//! News for agents: from desktops about control, from people about requests.

use handover_protocol::{AgentId, DesktopId, HandBack, RequestId, RequestView, Timestamp};
use tokio::sync::mpsc;

/// News that may wait to be told. Each comes of an act of a person, so there are never many.
const WAITING: usize = 1024;

/// Something that agents should hear of.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// A person has taken control of a desktop.
    Taken {
        /// Which.
        desktop: DesktopId,
        /// Who, in words.
        holder: String,
        /// When.
        at: Timestamp,
    },
    /// Control of a desktop is back.
    HandedBack {
        /// Which.
        desktop: DesktopId,
        /// What it came to.
        hand_back: HandBack,
        /// The requests that were dealt with by it.
        requests: Vec<RequestId>,
        /// The agents that use it.
        agents: Vec<AgentId>,
    },
    /// Who has control of a desktop changed.
    Changed(DesktopId),
    /// A desktop has ended.
    Gone {
        /// Which.
        desktop: DesktopId,
        /// The agents that used it.
        agents: Vec<AgentId>,
    },
    /// A person has answered an agent's request.
    Answered {
        /// The agent.
        agent: AgentId,
        /// Its request.
        request: RequestView,
        /// The person's words.
        text: String,
    },
    /// An agent's request will not be dealt with.
    Cancelled {
        /// The agent.
        agent: AgentId,
        /// Its request.
        request: RequestView,
    },
}

/// Where news are brought. Clones are the same place.
#[derive(Debug, Clone)]
pub struct Newsroom(mpsc::Sender<News>);

impl Newsroom {
    /// A place for news, and where they are read.
    pub fn new() -> (Self, mpsc::Receiver<News>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(sender), receiver)
    }

    /// Brings news. Never waits: what finds no room is left out, and agents learn of it when they next
    /// ask about the desktop or the request. False if it is left out.
    pub fn bring(&self, news: News) -> bool {
        let brought = self.0.try_send(news).is_ok();
        if !brought {
            // Not what: people's words are in it.
            tracing::warn!("agents are not told: too much waits to be told");
        }
        brought
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_left_out() {
        let (newsroom, mut waiting) = Newsroom::new();
        for number in 0..=WAITING {
            newsroom.bring(News::Changed(format!("d{number}").into()));
        }
        let mut read = Vec::new();
        while let Ok(news) = waiting.try_recv() {
            read.push(news);
        }
        assert_eq!(read.len(), WAITING);
        assert_eq!(read[0], News::Changed("d0".into()));
    }
}
