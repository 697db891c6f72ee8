//! Requests of the session's own agents: questions for permission that the host puts to people in
//! their name, and what becomes of requests when their agent ends.

use std::sync::Arc;

use handover_protocol::{
    AgentId, DesktopId, ErrorCode, Refusal, RequestId, RequestState, RequestView,
};
use handover_store::{Actor, NewEvent, Source};

use super::{Kept, MAX_TEXT, Requests, is_open, put};

/// What an agent asks permission for, in short.
const REASON: &str = "its program asks for permission: answer yes or no";

impl Requests {
    /// Asks people whether an agent may do something; durable when it answers. Only an answer in text
    /// deals with it, a takeover does not.
    ///
    /// # Errors
    /// `queue_full`, `storage_failed`.
    pub async fn ask_permission(
        &self,
        agent: &AgentId,
        desktop: Option<DesktopId>,
        what: &str,
    ) -> Result<RequestId, Refusal> {
        let what: String = what.chars().take(MAX_TEXT).collect();
        let event = NewEvent::new("request_human", Source::Agent).actor(Actor {
            uid: rustix::process::getuid().as_raw(),
            pid: std::process::id(),
            agent: Some(agent.clone()),
            via: "host".to_owned(),
            evidence: None,
        });
        self.make(event, |view| Kept {
            view: RequestView {
                desktop,
                agent: Some(agent.clone()),
                reason: REASON.to_owned(),
                question: Some(what),
                ..view
            },
            text: None,
            hand_back: None,
            asker: None,
            permission: true,
            untold: false,
        })
        .await
    }

    /// The oldest request of an agent that nobody has dealt with, or that it is about to be told of.
    pub fn of_agent(&self, agent: &AgentId) -> Option<RequestView> {
        let table = self.table();
        let mut awaited = table
            .kept
            .values()
            .filter(|kept| is_open(kept) || kept.untold);
        let own = awaited.find(|kept| kept.view.agent.as_ref() == Some(agent))?;
        Some(own.view.clone())
    }

    /// An agent has ended: nobody waits for its requests any more.
    pub fn cancel_of(&self, agent: &AgentId) {
        self.cancel_where(|kept| kept.view.agent.as_ref() == Some(agent));
    }

    /// A request is no longer needed.
    pub fn withdraw(&self, request: &RequestId) {
        self.cancel_where(|kept| kept.view.request_id == *request);
    }

    fn cancel_where(&self, which: impl Fn(&Kept) -> bool) {
        let mut cancelled = false;
        for (number, kept) in &mut self.table().kept {
            if is_open(kept) && which(kept) {
                kept.view.state = RequestState::Cancelled;
                self.store.put_soon(vec![put(*number, kept)]);
                cancelled = true;
            }
        }
        if cancelled {
            self.announce();
        }
    }

    /// The answer to a request once there is one; `None` if it was cancelled or forgotten.
    async fn answer_to(&self, request: &RequestId) -> Option<String> {
        let mut changed = self.changed.subscribe();
        let number = super::number(request).ok()?;
        loop {
            let kept = self.find(number).ok()?;
            if !is_open(&kept) {
                return kept.text;
            }
            changed.changed().await.ok()?;
        }
    }
}

/// A question of an agent's that waits for its answer. Dropping it withdraws it.
pub struct Question {
    requests: Arc<Requests>,
    request: RequestId,
}

impl Question {
    /// Waits for the answer to `request`.
    pub fn new(requests: Arc<Requests>, request: RequestId) -> Self {
        Self { requests, request }
    }

    /// The answer in a person's words; `None` if the question was cancelled.
    pub async fn answer(self) -> Option<String> {
        self.requests.answer_to(&self.request).await
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        // After an answer nothing is left to withdraw.
        self.requests.withdraw(&self.request);
    }
}

/// The refusal of one more request.
pub(super) fn full(most: usize) -> Refusal {
    Refusal::new(
        ErrorCode::QueueFull,
        format!("{most} requests for a person are open already: wait for one of them"),
    )
}
