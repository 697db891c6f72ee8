//! The threads of codex: the agent's own, its subagents, and others.

use handover_protocol::AgentStatus;
use serde_json::{Value, json};

use super::thread::{Kind, Thread};
use super::{Codex, Request};
use crate::driver::json::text;
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
        self.read(name, out);
    }

    fn read(&mut self, name: &str, out: &mut Vec<Effect>) {
        let params = json!({"threadId": name, "includeTurns": false});
        let request = Request::ReadThread(name.to_owned());
        self.ask(request, "thread/read", params, out);
    }

    /// The program has answered what it knows of a thread; `None` if it did not.
    pub(super) fn was_read(&mut self, name: &str, read: Option<&Value>, out: &mut Vec<Effect>) {
        if !read.is_some_and(|read| self.adopt(read, out)) {
            self.disown(name);
            self.announce(name, out);
        }
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
        let met = self.threads.contains_key(name);
        let thread = self.threads.entry(name.to_owned()).or_default();
        if !matches!(thread.kind, Kind::Child(_)) {
            thread.kind = Kind::Child(Box::default());
        }
        if let Kind::Child(kin) = &mut thread.kind {
            parent.clone_into(&mut kin.parent);
            kin.name = nickname.map(str::to_owned).or(kin.name.take());
            if kin.task.is_empty() {
                task.clone_into(&mut kin.task);
            }
        }
        if !met && nickname.is_none() {
            self.read(name, out);
        }
        self.announce(name, out);
        true
    }

    fn disown(&mut self, name: &str) {
        if let Some(thread) = self.threads.get_mut(name)
            && matches!(thread.kind, Kind::Unknown)
        {
            *thread = Thread::of(Kind::Foreign);
        }
    }

    /// Tells how a subagent stands, if that is news. Nothing is told before the program has said what
    /// it calls it.
    pub(super) fn announce(&mut self, name: &str, out: &mut Vec<Effect>) {
        let asked = |request: &Request| matches!(request, Request::ReadThread(of) if of == name);
        if self.requests.values().any(asked) {
            return;
        }
        let main = self.main.as_deref();
        let Some(thread) = self.threads.get_mut(name) else {
            return;
        };
        let (status, said) = (thread.status(), thread.said.clone());
        let Kind::Child(kin) = &mut thread.kind else {
            return;
        };
        let child = Child {
            native: name.to_owned(),
            parent: Some(kin.parent.clone()).filter(|parent| main != Some(parent)),
            name: kin.name.clone().unwrap_or_else(|| "subagent".to_owned()),
            task: kin.task.clone(),
            status,
            not_steerable: None,
            text: Some(said).filter(|said| !said.is_empty()),
        };
        if kin.told.is_none() && status != AgentStatus::Running {
            // It was there before it ended.
            let status = AgentStatus::Running;
            let running = Child {
                status,
                ..child.clone()
            };
            out.push(Effect::Child(running));
        }
        if kin.told.as_ref() != Some(&child) {
            out.push(Effect::Child(child.clone()));
            kin.told = Some(child);
        }
    }
}
