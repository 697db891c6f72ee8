//! What agents are told without having asked: what people did, and that control is back.

use handover_protocol::{AgentId, AgentStatus, DesktopId, RequestId, Source, Tokens};

use super::{Manager, ids};
use crate::environment::By;
use crate::run::Order;

impl Manager {
    /// Tells an agent something in its own context, as a message of the host. False if it cannot be
    /// told: then it learns of it when it next asks.
    pub fn tell(&self, id: &AgentId, text: &str) -> bool {
        let Ok(steer_id) = ids::fresh_steer() else {
            return false;
        };
        let by = By {
            actor: self.inner.env.host(),
            source: Source::Host,
        };
        let told = self.accept(&by, id, &steer_id, text.to_owned(), None);
        if let Err(refusal) = &told {
            tracing::debug!(agent = %id, code = refusal.code.as_str(), "an agent is not told");
        }
        told.is_ok()
    }

    /// Tells every agent that uses a desktop.
    pub fn tell_users(&self, desktop: &DesktopId, text: &str) {
        for user in self.users_of(desktop) {
            self.tell(&user.id, text);
        }
    }

    /// What agents wait for may have come, or will not come any more: those that wait for nothing
    /// end.
    pub fn reconsider(&self) {
        let table = self.inner.table();
        let waiting = table
            .unfinished()
            .filter(|entry| entry.task.status == AgentStatus::Waiting);
        for entry in waiting {
            let inbox = entry.work.as_ref().and_then(|work| work.inbox.as_ref());
            // One whose inbox is full has a turn before it.
            let _ = inbox.map(|inbox| inbox.try_send(Order::Reconsider));
        }
    }

    /// Tells an agent's parent what a person did to it. That it cannot be told never fails the act.
    pub(super) fn tell_parent(&self, id: &AgentId, what: &str) {
        let (parent, name) = {
            let table = self.inner.table();
            let Some(entry) = table.get(id) else {
                return;
            };
            let Some(parent) = entry.task.parent.clone() else {
                return;
            };
            (parent, entry.task.name.clone())
        };
        self.tell(
            &parent,
            &format!("[handover] Your agent {id} ({name}): a person {what}"),
        );
    }

    /// What the model of an agent took so far, all in all.
    pub(crate) fn counted(&self, id: &AgentId, tokens: Tokens) {
        if let Some(entry) = self.inner.table().get_mut(id) {
            entry.tokens = Some(tokens);
        }
    }

    /// The program of an agent asks for permission, and people were asked.
    pub(crate) fn asks(&self, id: &AgentId, question: &str, request: RequestId) {
        if let Some(work) = self.inner.table().work_mut(id) {
            work.asked.insert(question.to_owned(), request);
        }
        self.inner.set_status(id, AgentStatus::Waiting);
    }

    /// It no longer asks; true if it asks for nothing else.
    pub(crate) fn asks_no_more(&self, id: &AgentId, question: &str) -> bool {
        self.inner.table().work_mut(id).is_some_and(|work| {
            work.asked.remove(question);
            work.asked.is_empty()
        })
    }
}
