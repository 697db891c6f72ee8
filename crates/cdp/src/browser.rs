//! What the browser says: answers, events, and which sessions there are.

use std::collections::VecDeque;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::class::passes_in_human_time;
use crate::gate::{ClientId, Effect, Gate, Session, Stopped};
use crate::message::{self, FromBrowser, OfRequest, OfSession, read};
use crate::table::Pending;

/// How many requests stopped for a client are remembered for each session.
const MAX_STOPPED: usize = 1024;

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
                let value = message
                    .error
                    .map(|error| ("error", error))
                    .or(message.result.map(|result| ("result", result)));
                if let Some((member, value)) = value
                    && !asked.answered
                    && self.clients.contains_key(&asked.client)
                {
                    let answer = message::answer(asked.id, member, value, asked.session.as_deref());
                    self.effects
                        .push_back(Effect::ToClient(asked.client, answer));
                }
                self.effects.extend(asked.permit.map(Effect::Complete));
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
            Some(Pending::Left(client)) => {
                self.sessions.retain(|_, session| session.client != client);
                let left = self.table.remove_asked(|asked| asked.client == client);
                let permits = left.into_iter().filter_map(|asked| asked.permit);
                self.effects.extend(permits.map(Effect::Complete));
            }
            Some(Pending::Terminated(_) | Pending::Ignored) | None => {}
        }
    }

    fn event(&mut self, method: &str, event: &FromBrowser<'_>) {
        let Some(session) = event.session.as_deref() else {
            // Of the connection itself, on which nothing was asked for.
            return;
        };
        let params = event.params.map_or("{}", RawValue::get);
        let root = self
            .clients
            .iter()
            .find(|(_, root)| root.as_deref() == Some(session));
        let (client, named) = match root {
            Some((client, _)) => (*client, None),
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
                let within = self.sessions.get_mut(session);
                if within
                    .as_ref()
                    .is_some_and(|within| within.untold.is_some())
                {
                    return;
                }
                if let Some(within) = within {
                    stopped(within, method, event.params);
                }
                if self.closed {
                    self.let_go(session);
                    if !passes_in_human_time(method) {
                        return;
                    }
                }
            }
        }
        let event = message::event(method, params, named);
        self.effects.push_back(Effect::ToClient(client, event));
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
        let untold = self.closed.then(|| {
            let mut params: Value = serde_json::from_str(params).unwrap_or_default();
            params["waitingForDebugger"] = false.into();
            message::event("Target.attachedToTarget", &params.to_string(), named)
        });
        if untold.is_none() {
            let event = message::event("Target.attachedToTarget", params, named);
            self.effects.push_back(Effect::ToClient(client, event));
        }
        let session = Session {
            client,
            parent: Some(parent.to_owned()),
            waiting: attached.waiting,
            untold,
            stopped: VecDeque::new(),
            paused: false,
            ignores_input: false,
        };
        let id = attached.session.clone().into_owned();
        self.sessions.insert(id.clone(), session);
        if self.closed {
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
            if let Some(gone) = self.sessions.remove(&id) {
                known &= id != session || gone.untold.is_none();
            }
            for asked in self.table.remove_asked(|asked| asked.within == id) {
                self.fail(&asked, "the session has ended", None);
                self.effects.extend(asked.permit.map(Effect::Complete));
            }
        }
        known
    }
}

/// Keeps in mind what the browser has stopped for a client.
fn stopped(session: &mut Session, method: &str, params: Option<&RawValue>) {
    match method {
        "Fetch.requestPaused" | "Fetch.authRequired" => {
            if let Some(OfRequest { request }) = read(params) {
                if session.stopped.len() >= MAX_STOPPED {
                    session.stopped.pop_front();
                }
                session.stopped.push_back(Stopped {
                    request: request.into_owned(),
                    auth: method == "Fetch.authRequired",
                });
            }
        }
        "Debugger.paused" => session.paused = true,
        "Debugger.resumed" => session.paused = false,
        _ => {}
    }
}
