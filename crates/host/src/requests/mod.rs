//! Requests for a person: made by agents, dealt with by a takeover or an answer in text, and kept
//! across restarts of the host.

mod of_agents;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use handover_protocol::{
    AnswerParams, AnswerResult, DesktopId, ErrorCode, HandBack, Refusal, RequestHumanParams,
    RequestHumanResult, RequestId, RequestState, RequestStatusParams, RequestStatusResult,
    RequestView, question,
};
use handover_store::{NewEvent, Put, Store, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use crate::agents::{News, Newsroom};
use crate::callers::{Caller, CallerKind};
use crate::notices::{About, Notices};
use crate::record::not_recorded;
use crate::system::clock;

pub use of_agents::Question;

/// Requests that may be open at once.
pub const MAX_OPEN: usize = 64;
/// The longest wait for a change of a request's state.
pub const MAX_WAIT: Duration = Duration::from_secs(60);
/// Longest reason, question and answer, in characters.
const MAX_TEXT: usize = 8000;
/// Requests that are kept after they were dealt with.
const KEPT: usize = 256;
/// Where they are stored: followed by the number.
const PREFIX: &str = "request/";

/// The requests of a session.
#[derive(Debug)]
pub struct Requests {
    store: Store,
    table: Mutex<Table>,
    /// Changes with every change of any request.
    changed: watch::Sender<u64>,
    /// Told what people did with an agent's request.
    newsroom: OnceLock<Newsroom>,
    /// Told of new requests, for people who look at none of the host's clients.
    notices: OnceLock<Notices>,
}

#[derive(Debug, Default)]
struct Table {
    last: u64,
    kept: BTreeMap<u64, Kept>,
}

/// One request, as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    view: RequestView,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hand_back: Option<HandBack>,
    /// The process that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asker: Option<Asker>,
    /// The host asks in an agent's name whether it may do something.
    #[serde(default)]
    permission: bool,
    /// It was dealt with, and the agent that asked is about to be told.
    #[serde(skip)]
    untold: bool,
}

/// A process, told apart from every other that this boot saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asker {
    pid: u32,
    start_ticks: u64,
}

impl Asker {
    fn of(caller: &Caller) -> Self {
        Self {
            pid: caller.pid,
            start_ticks: caller.start_ticks,
        }
    }
}

impl Requests {
    /// Reads the requests of an earlier host. A takeover that it did not see end has ended with it,
    /// so what was taken is open again. Its agents have ended too, and with them their requests.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub async fn open(store: Store) -> Result<Self, StoreError> {
        let mut table = Table::default();
        for (key, value) in store.list(PREFIX).await? {
            let number = key.strip_prefix(PREFIX).and_then(|n| n.parse().ok());
            match (number, Kept::deserialize(value)) {
                (Some(number), Ok(mut kept)) => {
                    if kept.view.state == RequestState::Taken {
                        kept.view.state = RequestState::Open;
                    }
                    if is_open(&kept) && kept.view.agent.is_some() {
                        kept.view.state = RequestState::Cancelled;
                        store.put_soon(vec![put(number, &kept)]);
                    }
                    table.last = table.last.max(number);
                    table.kept.insert(number, kept);
                }
                _ => tracing::warn!(key, "a stored request cannot be read and is left out"),
            }
        }
        Ok(Self {
            store,
            table: Mutex::new(table),
            changed: watch::Sender::new(0),
            newsroom: OnceLock::new(),
            notices: OnceLock::new(),
        })
    }

    /// Where to bring news for agents, from now on. Said once.
    pub fn tell(&self, newsroom: Newsroom) {
        // A second place would be a fault; the first stays.
        let _ = self.newsroom.set(newsroom);
    }

    /// Where to tell people of new requests, from now on. Said once.
    pub fn notify(&self, notices: Notices) {
        // As with the newsroom.
        let _ = self.notices.set(notices);
    }

    /// Asks for a person; durable when it answers. `desktop` is the one that it is about, if any.
    ///
    /// # Errors
    /// `bad_params` for a question whose answer would be a secret, `queue_full`, `storage_failed`.
    pub async fn ask(
        &self,
        caller: &Caller,
        desktop: Option<DesktopId>,
        params: RequestHumanParams,
    ) -> Result<RequestHumanResult, Refusal> {
        check_text("reason", &params.reason)?;
        let question = params.question;
        if let Some(question) = &question {
            check_text("question", question)?;
            if question::asks_for_secret(question) {
                return Err(Refusal::bad_param(
                    "question",
                    "a password, code or key is never asked for in text: leave out `question`, and \
                     a person will take control of the desktop and enter it there",
                )
                .with("remedy", "takeover"));
            }
        }
        let agent = match &caller.kind {
            CallerKind::Agent { id } => id.clone(),
            CallerKind::Human { .. } | CallerKind::App { .. } => None,
        };
        let request_id = self
            .make(caller.event("request_human"), |view| Kept {
                view: RequestView {
                    desktop,
                    agent,
                    reason: params.reason,
                    question,
                    ..view
                },
                text: None,
                hand_back: None,
                asker: Some(Asker::of(caller)),
                permission: false,
                untold: false,
            })
            .await?;
        Ok(RequestHumanResult { request_id })
    }

    /// Stores a new request; `fill` completes it.
    async fn make(
        &self,
        event: NewEvent,
        fill: impl FnOnce(RequestView) -> Kept,
    ) -> Result<RequestId, Refusal> {
        let (stored, number) = {
            let mut table = self.table();
            let open = table.kept.values().filter(|kept| is_open(kept)).count();
            if open >= MAX_OPEN {
                return Err(of_agents::full(MAX_OPEN));
            }
            let number = table.last + 1;
            let kept = fill(RequestView {
                request_id: name(number),
                desktop: None,
                agent: None,
                reason: String::new(),
                question: None,
                state: RequestState::Open,
                since: clock::wall(),
            });
            let view = &kept.view;
            let mut event = event
                .field("requestId", view.request_id.as_str())
                .field("reason", view.reason.as_str())
                .field_if("question", view.question.as_deref());
            event.desktop = view.desktop.clone().map(|desktop| desktop.0);
            event.agent = view.agent.clone().map(|agent| agent.0);
            let mut puts = vec![put(number, &kept)];
            puts.extend(table.forget_oldest());
            // Counted before it is stored, so that two requests at once have two numbers and the
            // limit holds; queued under the lock, so that their order in the record is that of the
            // numbers.
            table.last = number;
            table.kept.insert(number, kept);
            (self.store.append_with(event, puts), number)
        };
        match stored.await {
            Ok(_) => {
                self.announce();
                self.give_notice(number);
                Ok(name(number))
            }
            Err(error) => {
                self.table().kept.remove(&number);
                Err(not_recorded(&error))
            }
        }
    }

    /// Tells people of a request that is on record.
    fn give_notice(&self, number: u64) {
        let (Some(notices), Ok(kept)) = (self.notices.get(), self.find(number)) else {
            return;
        };
        notices.give(About::RequestHuman {
            request_id: kept.view.request_id,
            desktop: kept.view.desktop,
            agent: kept.view.agent,
            reason: kept.view.reason,
            question: kept.view.question,
        });
    }

    /// How a request stands; waits up to `waitMs` for it to change while it is not dealt with.
    ///
    /// # Errors
    /// `bad_params` if there is no such request.
    pub async fn status(
        &self,
        caller: &Caller,
        params: RequestStatusParams,
    ) -> Result<RequestStatusResult, Refusal> {
        let number = number(&params.request_id)?;
        let mut changed = self.changed.subscribe();
        let before = self.find(number)?;
        let wait = params.wait_ms.map_or(Duration::ZERO, Duration::from_millis);
        let mut now = before.clone();
        if is_open(&before) && !wait.is_zero() {
            let change = async {
                while now.view.state == before.view.state && changed.changed().await.is_ok() {
                    now = self.find(number)?;
                }
                Ok::<(), Refusal>(())
            };
            // Having waited long enough is no failure: the state is told as it is.
            tokio::time::timeout(wait.min(MAX_WAIT), change)
                .await
                .unwrap_or(Ok(()))?;
        }
        let may_read = !matches!(caller.kind, CallerKind::App { .. });
        Ok(RequestStatusResult {
            request_id: params.request_id,
            state: now.view.state,
            // A program on a desktop may look, but the answer is for the agent that asked.
            text: now.text.filter(|_| may_read),
            hand_back: now.hand_back.filter(|_| may_read),
        })
    }

    /// Answers in text; durable when it answers. A person may answer any request. The program that
    /// asked may answer its own: it passes on what the person who sits at the agent's client said,
    /// and the record shows it as the agent's act.
    ///
    /// # Errors
    /// `bad_params` if there is no such request, it asked no question, or it was dealt with;
    /// `caller_refused` for another agent's request.
    pub async fn answer(
        &self,
        caller: &Caller,
        params: AnswerParams,
    ) -> Result<AnswerResult, Refusal> {
        let person = matches!(caller.kind, CallerKind::Human { .. });
        let found = number(&params.request_id).ok();
        let own = |kept: &Kept| kept.asker == Some(Asker::of(caller));
        // Before anything else: whether there is such a request is not another agent's business.
        if !person && !found.is_some_and(|number| self.table().kept.get(&number).is_some_and(own)) {
            return Err(Refusal::new(
                ErrorCode::CallerRefused,
                "only a person may answer a request that another program made",
            ));
        }
        let number = found.ok_or_else(no_request_id)?;
        check_text("text", params.text.expose())?;
        let stored = {
            let mut table = self.table();
            let kept = table.kept.get_mut(&number).ok_or_else(|| unknown(number))?;
            if !is_open(kept) {
                return Err(Refusal::new(
                    ErrorCode::BadParams,
                    "this request was dealt with already; `list` shows those that are open",
                )
                .with("state", kept.view.state));
            }
            // Without a desktop there is no other way to deal with it.
            if kept.view.question.is_none() && kept.view.desktop.is_some() {
                return Err(Refusal::new(
                    ErrorCode::BadParams,
                    "this request asks no question: take control of its desktop instead",
                )
                .with("remedy", "takeover"));
            }
            if kept.permission && handover_agents::decision(params.text.expose()).is_none() {
                return Err(Refusal::new(
                    ErrorCode::BadParams,
                    "this request asks for permission: answer `yes` or `no`; it stays open",
                )
                .with("parameter", "text"));
            }
            let mut event = caller
                .event("request_answered")
                .field("requestId", params.request_id.as_str())
                .field("text", params.text.expose());
            event.desktop = kept.view.desktop.clone().map(|desktop| desktop.0);
            event.agent = kept.view.agent.clone().map(|agent| agent.0);
            let mut answered = kept.clone();
            answered.dealt_with(RequestState::Answered);
            answered.text = Some(params.text.into_inner());
            let put = put(number, &answered);
            let before = std::mem::replace(kept, answered.clone());
            (self.store.append_with(event, vec![put]), before, answered)
        };
        let (stored, before, answered) = stored;
        if let Err(error) = stored.await {
            self.table().kept.insert(number, before);
            return Err(not_recorded(&error));
        }
        self.announce();
        if !self.bring(answered) {
            self.told(std::slice::from_ref(&params.request_id));
        }
        Ok(AnswerResult {
            request_id: params.request_id,
            state: RequestState::Answered,
        })
    }

    /// A person has taken control of `desktop`: its open requests are being dealt with.
    pub fn taken(&self, desktop: &DesktopId) {
        self.change(desktop, |kept| {
            let open = kept.view.state == RequestState::Open;
            if open {
                kept.view.state = RequestState::Taken;
            }
            open
        });
    }

    /// Control of `desktop` is back. What the person took up is dealt with; which it was is answered.
    pub fn handed_back(&self, desktop: &DesktopId, hand_back: &HandBack) -> Vec<RequestId> {
        self.change(desktop, |kept| {
            let taken = kept.view.state == RequestState::Taken;
            if taken {
                kept.dealt_with(RequestState::HandedBack);
                kept.hand_back = Some(hand_back.clone());
            }
            taken
        })
    }

    /// `desktop` has ended: nobody can deal with its requests any more.
    pub fn cancel(&self, desktop: &DesktopId) {
        self.change(desktop, |kept| {
            let open = is_open(kept);
            if open {
                kept.dealt_with(RequestState::Cancelled);
                // The table is locked: what cannot be told is not waited for either.
                kept.untold &= self.bring(kept.clone());
            }
            open
        });
    }

    /// Those that asked were told what became of these requests.
    pub fn told(&self, requests: &[RequestId]) {
        let mut table = self.table();
        for kept in table.kept.values_mut() {
            kept.untold &= !requests.contains(&kept.view.request_id);
        }
    }

    /// Brings the news to the agent whose request was dealt with; false if it will not be told.
    /// Permission is waited for by the host itself.
    fn bring(&self, kept: Kept) -> bool {
        let (Some(newsroom), Some(agent), false) = (
            self.newsroom.get(),
            kept.view.agent.clone(),
            kept.permission,
        ) else {
            return false;
        };
        let request = kept.view;
        newsroom.bring(match kept.text {
            Some(text) => News::Answered {
                agent,
                request,
                text,
            },
            None => News::Cancelled { agent, request },
        })
    }

    /// The requests that nobody has dealt with, oldest first; of one desktop, or of all.
    pub fn open_requests(&self, desktop: Option<&DesktopId>) -> Vec<RequestView> {
        self.table()
            .kept
            .values()
            .filter(|kept| is_open(kept))
            .filter(|kept| desktop.is_none() || kept.view.desktop.as_ref() == desktop)
            .map(|kept| kept.view.clone())
            .collect()
    }

    /// Applies `act` to the requests of `desktop` and stores those that it changed. What becomes of a
    /// desktop does not answer whether an agent may do something.
    fn change(&self, desktop: &DesktopId, act: impl Fn(&mut Kept) -> bool) -> Vec<RequestId> {
        let mut table = self.table();
        let mut changed = Vec::new();
        for (number, kept) in &mut table.kept {
            let concerned = kept.view.desktop.as_ref() == Some(desktop) && !kept.permission;
            if concerned && act(kept) {
                self.store.put_soon(vec![put(*number, kept)]);
                changed.push(kept.view.request_id.clone());
            }
        }
        drop(table);
        if !changed.is_empty() {
            self.announce();
        }
        changed
    }

    fn find(&self, number: u64) -> Result<Kept, Refusal> {
        let found = self.table().kept.get(&number).cloned();
        found.ok_or_else(|| unknown(number))
    }

    fn announce(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it holds this lock.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Nobody has to deal with it any more. An agent that the host runs is told.
    fn dealt_with(&mut self, state: RequestState) {
        self.view.state = state;
        self.untold = self.view.agent.is_some() && !self.permission;
    }
}

impl Table {
    /// Forgets the oldest requests that were dealt with, beyond those that are kept.
    fn forget_oldest(&mut self) -> Vec<Put> {
        let closed: Vec<u64> = self
            .kept
            .iter()
            .filter(|(_, kept)| !is_open(kept))
            .map(|(number, _)| *number)
            .collect();
        let surplus = closed.len().saturating_sub(KEPT);
        closed[..surplus]
            .iter()
            .map(|number| {
                self.kept.remove(number);
                Put::delete(key(*number))
            })
            .collect()
    }
}

fn is_open(kept: &Kept) -> bool {
    matches!(kept.view.state, RequestState::Open | RequestState::Taken)
}

fn name(number: u64) -> RequestId {
    RequestId(format!("r{number}"))
}

fn number(id: &RequestId) -> Result<u64, Refusal> {
    id.as_str()
        .strip_prefix('r')
        .and_then(|n| n.parse().ok())
        .ok_or_else(no_request_id)
}

/// For what cannot be the name of a request. It may be anything, and is not repeated.
fn no_request_id() -> Refusal {
    let message = "`requestId` must be `r` and a number, as `request_human` answered; `list` shows the \
                   requests that are open";
    Refusal::bad_param("requestId", message)
}

fn unknown(number: u64) -> Refusal {
    let name = name(number);
    let message = format!("there is no request {name}; `list` shows those that are open");
    Refusal::bad_param("requestId", message).with("requestId", name)
}

fn key(number: u64) -> String {
    format!("{PREFIX}{number}")
}

fn put(number: u64, kept: &Kept) -> Put {
    // Text, numbers and lists of them can always be written as JSON.
    Put::set(
        key(number),
        serde_json::to_value(kept).unwrap_or(Value::Null),
    )
}

fn check_text(what: &str, text: &str) -> Result<(), Refusal> {
    let problem = if text.trim().is_empty() {
        "must not be empty".to_owned()
    } else if text.chars().count() > MAX_TEXT {
        format!("has more than {MAX_TEXT} characters: shorten it")
    } else {
        return Ok(());
    };
    Err(Refusal::bad_param(what, format!("`{what}` {problem}")))
}
