//! Holding up scripts that were cut off while they waited for something.
//!
//! A script that waits (`await`, a timer) cannot be ended: `Runtime.terminateExecution` ends what runs. So
//! a session of the gate's own finds it among the page's scripts and sets a breakpoint at each place where
//! it can go on. Where it then stops, it is ended. The page's own scripts have no breakpoints and go on.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::gate::{Gate, Permit};
use crate::message::{FromBrowser, OfSession, read};
use crate::scripts::{MAX_SCRIPT_BYTES, Texts};
use crate::table::{Kind, Pending};

/// Scripts of a page that are looked at, at most.
const MAX_LOOKED_AT: usize = 4096;
/// Places at which one script may stop. The browser names no more.
const MAX_PLACES: usize = 1000;
/// Scripts that were left running, at most.
pub(crate) const MAX_LEFT: usize = 64;

/// What guards one page.
#[derive(Debug)]
pub(crate) struct Guard {
    target: String,
    texts: Texts,
    session: Option<String>,
    /// Commands of its own that the browser has not answered.
    unanswered: usize,
    looked_at: usize,
    /// Something cannot be guarded.
    failed: bool,
    /// All that was to be guarded is.
    armed: bool,
}

/// A guard's command, by what its answer says.
#[derive(Debug)]
pub(crate) enum Step {
    Attach,
    Enable,
    /// The text of this script.
    Text(String),
    /// Where this script can stop.
    Places,
    Break,
}

/// A script whose client has left before it was answered.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) target: String,
    pub(crate) params: String,
    pub(crate) permit: Permit,
}

#[derive(Deserialize)]
struct Parsed {
    #[serde(rename = "scriptId")]
    script: String,
    #[serde(default, rename = "embedderName")]
    resource: String,
    #[serde(default)]
    length: usize,
}

#[derive(Deserialize)]
struct Text {
    #[serde(rename = "scriptSource")]
    text: String,
}

#[derive(Deserialize)]
struct Places<'a> {
    #[serde(borrow)]
    locations: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Paused {
    #[serde(default, rename = "hitBreakpoints")]
    places: Vec<String>,
}

impl Gate {
    /// Guards every page in which a script of a client is unanswered.
    pub(crate) fn guard(&mut self) {
        let mut targets: Vec<String> = self.left.iter().map(|left| left.target.clone()).collect();
        for asked in self.table.asked() {
            if asked.permit.is_some() && asked.kind == Kind::Script {
                let session = self.sessions.get(&asked.within);
                targets.extend(session.map(|session| session.target.clone()));
            }
        }
        targets.sort_unstable();
        targets.dedup();
        targets.retain(|target| !self.guards.values().any(|guard| guard.target == *target));
        for target in targets {
            let texts = self.texts(&target);
            let params = json!({"targetId": target, "flatten": true});
            self.guards_made += 1;
            let number = self.guards_made;
            let guard = Guard {
                target,
                texts,
                session: None,
                unanswered: 0,
                looked_at: 0,
                failed: false,
                armed: false,
            };
            self.guards.insert(number, guard);
            self.guards_own(number, "Target.attachToTarget", &params, Step::Attach);
        }
    }

    /// By what the scripts are known that may go on in a page.
    fn texts(&mut self, target: &str) -> Texts {
        let mut texts = Texts::default();
        let left = self.left.iter().filter(|left| left.target == target);
        left.for_each(|left| texts.add(&left.params));
        for asked in self.table.asked() {
            let within = self.sessions.get(&asked.within);
            if within.is_some_and(|session| session.target == target) {
                asked.script.iter().for_each(|params| texts.add(params));
            }
        }
        // What earlier ones have defined, these may call.
        for session in self.sessions.values() {
            if session.target == target {
                session.recent.all().for_each(|params| texts.add(params));
            }
        }
        texts
    }

    fn guards_own(&mut self, number: u64, method: &str, params: &Value, step: Step) {
        let Some(guard) = self.guards.get_mut(&number) else {
            return;
        };
        guard.unanswered += 1;
        let within = guard.session.clone();
        let pending = Pending::Guard(number, step);
        self.own(method, Some(params), pending, within.as_deref());
    }

    /// The browser has answered a guard.
    pub(crate) fn guard_answered(&mut self, number: u64, step: Step, message: &FromBrowser<'_>) {
        let Some(guard) = self.guards.get_mut(&number) else {
            // Given up meanwhile, before it had a session.
            if let (Step::Attach, Some(begun)) = (step, read::<OfSession<'_>>(message.result)) {
                self.end_session(&begun.session);
            }
            return;
        };
        guard.unanswered -= 1;
        match step {
            Step::Attach => match read::<OfSession<'_>>(message.result) {
                Some(begun) => {
                    guard.session = Some(begun.session.into_owned());
                    self.guards_own(number, "Debugger.enable", &json!({}), Step::Enable);
                }
                None => self.guard_ended(number),
            },
            Step::Enable => guard.failed |= message.error.is_some(),
            Step::Text(script) => {
                // A script that has gone has no text, and does not go on either.
                let text = read::<Text>(message.result);
                if text.is_some_and(|text| guard.texts.hold(&text.text)) {
                    let params =
                        json!({"start": {"scriptId": script, "lineNumber": 0, "columnNumber": 0}});
                    let method = "Debugger.getPossibleBreakpoints";
                    self.guards_own(number, method, &params, Step::Places);
                }
            }
            Step::Places => {
                let places = message.result.map(RawValue::get);
                let places =
                    places.and_then(|places| serde_json::from_str::<Places<'_>>(places).ok());
                let places = places.map_or_else(Vec::new, |places| places.locations);
                guard.failed |= places.len() >= MAX_PLACES;
                for place in places {
                    let params = json!({"location": place});
                    self.guards_own(number, "Debugger.setBreakpoint", &params, Step::Break);
                }
            }
            Step::Break => {}
        }
        self.check_guard(number);
    }

    /// Ends the waiting for a page's scripts if all of them are held up.
    fn check_guard(&mut self, number: u64) {
        let Some(guard) = self.guards.get_mut(&number) else {
            return;
        };
        if guard.unanswered > 0 || guard.failed || guard.armed {
            return;
        }
        guard.armed = true;
        let target = guard.target.clone();
        let sessions = &self.sessions;
        let held_up = |within: &str| {
            let session = sessions.get(within);
            session.is_some_and(|session| session.target == target)
        };
        let given_up = self.table.asked().filter(|asked| {
            asked.kind == Kind::Script && asked.can_be_known() && held_up(&asked.within)
        });
        let given_up = given_up.filter_map(|asked| asked.give_up()).collect();
        self.interrupted(given_up);
        self.nothing_left_in(&target);
    }

    /// Whether all scripts of clients in that page are held up already.
    pub(crate) fn is_guarded(&self, target: &str) -> bool {
        let mut guards = self.guards.values();
        guards.any(|guard| guard.armed && guard.target == target)
    }

    /// What left scripts have done in that page is over.
    fn nothing_left_in(&mut self, target: &str) {
        let over = self.left.extract_if(.., |left| left.target == target);
        let permits = over.map(|left| crate::gate::Effect::Complete(left.permit));
        self.effects.extend(permits);
    }

    /// An event in a guard's session; false if it is none.
    pub(crate) fn guard_event(
        &mut self,
        session: &str,
        event: &str,
        params: Option<&RawValue>,
    ) -> bool {
        let mut guards = self.guards.iter_mut();
        let guard = guards.find(|(_, guard)| guard.session.as_deref() == Some(session));
        let Some((&number, guard)) = guard else {
            return false;
        };
        match event {
            "Debugger.scriptParsed" => {
                let Some(parsed) = read::<Parsed>(params) else {
                    return true;
                };
                // What the page has loaded bears the name of its resource.
                let own = parsed.resource.is_empty() && guard.texts.may_hold(parsed.length);
                if own && parsed.length <= MAX_SCRIPT_BYTES {
                    guard.looked_at += 1;
                    if guard.looked_at > MAX_LOOKED_AT {
                        guard.failed = true;
                        return true;
                    }
                    let params = json!({"scriptId": parsed.script});
                    let step = Step::Text(parsed.script);
                    self.guards_own(number, "Debugger.getScriptSource", &params, step);
                }
            }
            "Debugger.paused" => {
                // Another pause is the page's own: there is nobody who debugs it.
                let ends = read::<Paused>(params).is_some_and(|paused| !paused.places.is_empty());
                let params = json!({"terminateOnResume": ends});
                let session = session.to_owned();
                self.own(
                    "Debugger.resume",
                    Some(&params),
                    Pending::Ignored,
                    Some(&session),
                );
            }
            _ => {}
        }
        true
    }

    /// A session has ended; if it was a guard's, its page has.
    pub(crate) fn guard_detached(&mut self, session: &str) {
        let mut guards = self.guards.iter();
        let guard = guards.find(|(_, guard)| guard.session.as_deref() == Some(session));
        if let Some((&number, _)) = guard {
            self.guard_ended(number);
        }
    }

    /// There is no such page, or none any more.
    fn guard_ended(&mut self, number: u64) {
        if let Some(guard) = self.guards.remove(&number) {
            let target = guard.target;
            let attached = self
                .sessions
                .values()
                .any(|session| session.target == target);
            // A worker of a page, which the gate cannot attach to, is no page that has ended.
            if !attached {
                self.nothing_left_in(&target);
            }
        }
    }

    /// A page's process has ended, and with it all that ran there.
    pub(crate) fn unguard_in(&mut self, target: &str) {
        let gone = self
            .guards
            .extract_if(.., |_, guard| guard.target == target);
        let gone: Vec<Guard> = gone.map(|(_, guard)| guard).collect();
        for session in gone.into_iter().filter_map(|guard| guard.session) {
            self.end_session(&session);
        }
        self.nothing_left_in(target);
    }

    /// Guards nothing any more.
    pub(crate) fn unguard(&mut self) {
        for guard in std::mem::take(&mut self.guards).into_values() {
            if let Some(session) = guard.session {
                self.end_session(&session);
            }
        }
    }

    fn end_session(&mut self, session: &str) {
        let params = json!({"sessionId": session});
        let method = "Target.detachFromTarget";
        self.own(method, Some(&params), Pending::Ignored, None);
    }
}
