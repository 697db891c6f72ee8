//! The threads of codex: the agent's own, its subagents, and others.

use serde_json::{Value, json};

use super::rpc::text;
use super::thread::{Kin, Kind, Thread};
use super::{Codex, Request};
use crate::driver::{Child, Effect};

/// The most threads that are followed; what codex spawns beyond is not listed.
const MAX_THREADS: usize = 256;

impl Codex {
    /// A thread that is the agent's or a subagent's.
    pub(super) fn followed(&mut self, name: &str) -> Option<&mut Thread> {
        let followed = |thread: &&mut Thread| !matches!(thread.kind, Kind::Foreign);
        self.threads.get_mut(name).filter(followed)
    }

    /// The name of a thread if it is not the agent's own.
    pub(super) fn child(&self, thread: &str) -> Option<String> {
        Some(thread.to_owned()).filter(|_| self.main.as_deref() != Some(thread))
    }

    /// Asks about a thread that was not heard of before.
    pub(super) fn meet(&mut self, name: &str, out: &mut Vec<Effect>) {
        // Before our own thread has a name, no other can be a subagent of it.
        if self.main.is_none() || self.threads.contains_key(name) || self.is_full() {
            return;
        }
        self.threads
            .insert(name.to_owned(), Thread::of(Kind::Unknown));
        let params = json!({"threadId": name, "includeTurns": false});
        self.ask(
            Request::ReadThread(name.to_owned()),
            "thread/read",
            params,
            out,
        );
    }

    pub(super) fn is_full(&self) -> bool {
        self.threads.len() >= MAX_THREADS
    }

    /// Lists a thread as a subagent if its parent is followed. False if it is none.
    pub(super) fn adopt(&mut self, thread: &Value, out: &mut Vec<Effect>) -> bool {
        let (Some(name), Some(parent)) = (text(thread, "/id"), text(thread, "/parentThreadId"))
        else {
            return false;
        };
        let nickname = text(thread, "/agentNickname").or_else(|| text(thread, "/name"));
        let task = text(thread, "/preview").unwrap_or_default();
        self.adopt_as(name, parent, nickname, task, out)
    }

    pub(super) fn adopt_as(
        &mut self,
        name: &str,
        parent: &str,
        nickname: Option<&str>,
        task: &str,
        out: &mut Vec<Effect>,
    ) -> bool {
        let itself = name == parent || self.main.as_deref() == Some(name);
        let full = self.is_full() && !self.threads.contains_key(name);
        if itself || full || self.followed(parent).is_none() {
            return false;
        }
        let thread = self.threads.entry(name.to_owned()).or_default();
        if !matches!(thread.kind, Kind::Child(_)) {
            thread.kind = Kind::Child(Kin::default());
        }
        if let Kind::Child(kin) = &mut thread.kind {
            parent.clone_into(&mut kin.parent);
            kin.name = nickname.map(str::to_owned).or(kin.name.take());
            if kin.task.is_empty() {
                task.clone_into(&mut kin.task);
            }
        }
        self.announce(name, out);
        true
    }

    pub(super) fn disown(&mut self, name: &str) {
        if let Some(thread) = self.threads.get_mut(name)
            && matches!(thread.kind, Kind::Unknown)
        {
            *thread = Thread::of(Kind::Foreign);
        }
    }

    /// Tells how a subagent stands.
    pub(super) fn announce(&self, name: &str, out: &mut Vec<Effect>) {
        let Some(thread) = self.threads.get(name) else {
            return;
        };
        if let Kind::Child(kin) = &thread.kind {
            out.push(Effect::Child(Child {
                native: name.to_owned(),
                parent: self.child(&kin.parent),
                name: kin.name.clone().unwrap_or_else(|| "subagent".to_owned()),
                task: kin.task.clone(),
                status: thread.status(),
                not_steerable: None,
                text: Some(thread.said.clone()).filter(|said| !said.is_empty()),
            }));
        }
    }
}
