//! What the browser says: answers, events, and which sessions there are.

use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::built_in::Own;
use crate::class::passes_in_human_time;
use crate::gate::{ClientId, Effect, Gate};
use crate::guard::{Left, MAX_LEFT};
use crate::message::{self, FromBrowser, OfSession, read};
use crate::session::{Dialog, Session};
use crate::table::{Asked, Kind, Pending};

impl Gate {
    /// A message of the browser.
    pub fn from_browser(&mut self, bytes: &[u8]) {
        // The browser is ours: what it sends that cannot be read is of a kind that nobody waits for.
        let Ok(message) = serde_json::from_slice::<FromBrowser<'_>>(bytes) else {
            return;
        };
        match (message.id, &message.method) {
            (Some(number), _) => self.answered(number, &message),
            (None, Some(method)) => self.event(method, &message),
            (None, None) => {}
        }
    }

    fn answered(&mut self, number: i64, message: &FromBrowser<'_>) {
        match self.table.take(number) {
            Some(Pending::Client(asked)) => {
                let result = message.result;
                let registers = asked.registers.as_deref().zip(result);
                let named = registers
                    .and_then(|(params, result)| self.registered(&asked.within, params, result));
                let value = message
                    .error
                    .map(|error| ("error", error))
                    .or(named.as_deref().or(result).map(|result| ("result", result)));
                if let Some((member, value)) = value
                    && !asked.answered
                    && self.clients.contains_key(&asked.client)
                {
                    let answer = message::answer(asked.id, member, value, asked.session.as_deref());
                    self.effects
                        .push_back(Effect::ToClient(asked.client, answer));
                }
                if asked.kind == Kind::Load && result.is_some() {
                    self.has_loaded(&asked.within);
                }
                self.over(&asked);
            }
            Some(Pending::Root(client)) => match read(message.result) {
                Some(OfSession { session, .. }) => match self.clients.get_mut(&client) {
                    Some(root) => {
                        *root = Some(session.clone().into_owned());
                        self.effects.push_back(Effect::Ready(client));
                    }
                    // It has left before.
                    None => self.detach(client, &session),
                },
                None => {
                    self.clients.remove(&client);
                    self.effects.push_back(Effect::Close(client));
                }
            },
            Some(Pending::Left(client)) => self.has_left(client),
            Some(Pending::Released(within)) => self.released(&within),
            Some(Pending::Named(script)) => self.named(&script, message.result),
            Some(Pending::Look(look)) => self.looked(look, message),
            Some(Pending::Thaw(thaw)) => self.thaws(thaw, message),
            Some(Pending::Cover(target)) => self.covered(&target, message),
            Some(Pending::Guard(guard, step)) => self.guard_answered(guard, step, message),
            Some(Pending::LoadAnew) => self.loads_anew(message),
            Some(Pending::Heard(client, within)) => self.has_heard(client, &within),
            Some(Pending::Ignored) | None => {}
        }
    }

    /// A client's command has ended.
    fn over(&mut self, asked: &Asked) {
        if let Some(permit) = asked.permit
            && !self.keeps(&asked.within, permit)
        {
            self.effects.push_back(Effect::Complete(permit));
        }
        self.let_kept(&asked.within);
    }

    /// All sessions of a client have ended. What its scripts wait for goes on without it, until they are
    /// held up.
    fn has_left(&mut self, client: ClientId) {
        let mut sessions = std::mem::take(&mut self.sessions);
        let gone = sessions.extract_if(|_, session| session.client == client);
        let gone: HashMap<String, Session> = gone.collect();
        self.sessions = sessions;
        for asked in self.table.remove_asked(|asked| asked.client == client) {
            let Some(permit) = asked.permit else {
                continue;
            };
            let session = gone.get(&asked.within);
            match (session, asked.script) {
                (Some(session), Some(params))
                    if self.left.len() < MAX_LEFT && !self.is_guarded(&session.target) =>
                {
                    self.left.push(Left {
                        target: session.target.clone(),
                        params,
                        permit,
                    });
                }
                _ => self.effects.push_back(Effect::Complete(permit)),
            }
        }
        self.tracing.retain(|_, of| *of != client);
        let kept = gone.into_values().filter_map(|session| session.kept);
        self.effects.extend(kept.map(Effect::Complete));
        if self.cutting {
            self.guard();
        }
    }

    fn event(&mut self, method: &str, event: &FromBrowser<'_>) {
        let Some(session) = event.session.as_deref() else {
            // Of the connection itself, on which only guards were asked for and what there is.
            self.target_told(method, event.params);
            if method == "Target.detachedFromTarget"
                && let Some(detached) = read::<OfSession<'_>>(event.params)
            {
                self.guard_detached(&detached.session);
            }
            return;
        };
        if self.guard_event(session, method, event.params) {
            return;
        }
        let mut params = event.params.map_or("{}", RawValue::get);
        let root = self
            .clients
            .iter()
            .find(|(_, root)| root.as_deref() == Some(session));
        let root = root.map(|(client, _)| *client);
        let (client, named) = match root.or_else(|| self.parts_from(session)) {
            Some(client) => (client, None),
            None => match self.sessions.get(session) {
                Some(known) => (known.client, Some(session)),
                None => return,
            },
        };
        match method {
            "Target.attachedToTarget" => {
                if let Some(attached) = read::<OfSession<'_>>(event.params) {
                    self.attached(client, session, named, &attached, params);
                }
                return;
            }
            "Target.detachedFromTarget" => {
                let told = read::<OfSession<'_>>(event.params)
                    .is_none_or(|detached| self.detached(&detached.session));
                if !told {
                    return;
                }
            }
            _ => {
                let Some(passes) = self.heard(session, method, event, named) else {
                    return;
                };
                params = passes;
            }
        }
        let event = message::event(method, params, named);
        self.effects.push_back(Effect::ToClient(client, event));
    }

    /// What the client hears of an event, if it does.
    fn heard<'a>(
        &mut self,
        session: &str,
        method: &str,
        event: &FromBrowser<'a>,
        named: Option<&str>,
    ) -> Option<&'a str> {
        let params = event.params.map_or("{}", RawValue::get);
        let closed = self.closed;
        if let Some(within) = self.sessions.get_mut(session) {
            if within.untold.is_some() {
                return None;
            }
            within.hears(method, event.params, closed);
            if matches!(
                method,
                "Page.frameNavigated" | "Runtime.executionContextCreated"
            ) {
                self.dead.remove(&within.target);
            }
            match method {
                "Page.javascriptDialogOpening" if closed => {
                    let event = message::event(method, params, named);
                    within.dialog = Some(Dialog::Untold(event));
                }
                "Page.javascriptDialogOpening" => within.dialog = Some(Dialog::Told),
                "Page.javascriptDialogClosed" => {
                    let told = matches!(within.dialog.take(), Some(Dialog::Told));
                    if closed {
                        // Without what the person has answered.
                        return told.then_some(r#"{"result":false,"userInput":""}"#);
                    }
                }
                _ => within.missed_changes |= closed && method.starts_with("DOM."),
            }
        }
        if closed {
            self.let_go(session);
            if !passes_in_human_time(method) {
                return None;
            }
        }
        Some(params)
    }

    /// A session has begun below `parent`.
    fn attached(
        &mut self,
        client: ClientId,
        parent: &str,
        named: Option<&str>,
        attached: &OfSession<'_>,
        params: &str,
    ) {
        let of = attached.of.as_ref();
        if of.and_then(|of| self.keep_in_mind(of)) == Some(Own::Part) {
            let event = message::event("Target.attachedToTarget", params, named);
            self.effects.push_back(Effect::ToClient(client, event));
            self.turn_away(parent, &attached.session);
            return;
        }
        let untold = self.closed.then(|| {
            let mut params: Value = serde_json::from_str(params).unwrap_or_default();
            params["waitingForDebugger"] = false.into();
            message::event("Target.attachedToTarget", &params.to_string(), named)
        });
        if untold.is_none() {
            let event = message::event("Target.attachedToTarget", params, named);
            self.effects.push_back(Effect::ToClient(client, event));
        }
        let target = attached.of.as_ref();
        let target = target.map(|of| of.target.clone().into_owned());
        let target = target.unwrap_or_default();
        // Whatever is said of a page that a tab has held up, it may wait.
        let waiting = attached.waiting || self.closed;
        self.begun += 1;
        let mut session = Session::new(client, self.begun, parent, target, waiting, untold);
        session.of_worker = of.is_some_and(|of| of.r#type == "worker");
        let id = attached.session.clone().into_owned();
        self.sessions.insert(id.clone(), session);
        if self.closed {
            let is_tab = attached.of.as_ref().is_some_and(|of| of.r#type == "tab");
            if is_tab {
                // A tab goes on only if the page in it is let go too, for which it must have a session.
                let params = json!({"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true, "filter": [{}]});
                let method = "Target.setAutoAttach";
                self.own(method, Some(&params), Pending::Ignored, Some(&id));
                self.sessions
                    .entry(id.clone())
                    .and_modify(|tab| tab.helped = true);
            }
            self.let_go(&id);
        }
    }

    /// A session has ended, and with it those below it; no answer comes from them any more. False if its
    /// client has never heard of it.
    fn detached(&mut self, session: &str) -> bool {
        let mut ended = vec![session.to_owned()];
        let mut known = true;
        while let Some(id) = ended.pop() {
            let below = self.sessions.iter();
            let below = below.filter(|(_, session)| session.parent.as_deref() == Some(&id));
            ended.extend(below.map(|(id, _)| id.clone()));
            self.tracing.remove(&id);
            let parting: Vec<ClientId> = self.parting.keys().copied().collect();
            for client in parting {
                self.has_heard(client, &id);
            }
            if let Some(gone) = self.sessions.remove(&id) {
                known &= id != session || gone.untold.is_none();
                self.effects.extend(gone.kept.map(Effect::Complete));
            }
            for asked in self.table.remove_asked(|asked| asked.within == id) {
                self.fail(&asked, "the session has ended", None);
                self.effects.extend(asked.permit.map(Effect::Complete));
            }
        }
        known
    }
}
