//! The way to a takeover: everything of the agents ends, provably, before control is granted.
//!
//! What is pressed is let go at once. What goes on after a grace is cut off: running scripts are ended,
//! waiting ones held up ([`crate::guard`]), loading is stopped, dialogs are closed. What only reads is given
//! up, since its answer then goes nowhere. Everything else keeps its permit until the browser has answered,
//! and the takeover waits for it; at last its page is ended ([`crate::stuck`]).

use std::collections::BTreeSet;

use serde_json::json;
use serde_json::value::RawValue;

use crate::gate::{ClientId, Effect, Gate, Permit};
use crate::message;
use crate::session::Dialog;
use crate::table::{Asked, Kind, Pending};

/// A command that is not waited for any more: whose, its number and session, and its permit.
pub(crate) type GivenUp = (ClientId, i64, Option<String>, Permit);

impl Gate {
    /// Whether a takeover has to wait for something.
    pub fn is_busy(&mut self) -> bool {
        !self.left.is_empty()
            || self.sessions.values().any(|session| session.kept.is_some())
            || self.table.asked().any(|asked| asked.permit.is_some())
    }

    /// A takeover begins: what clients hold down is let go.
    pub fn release(&mut self) {
        let mut sessions: Vec<String> = self.sessions.keys().cloned().collect();
        sessions.sort_unstable();
        for session in sessions {
            self.release_in(&session);
        }
    }

    /// Lets go what is held down in a session.
    pub(crate) fn release_in(&mut self, id: &str) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let releases = session.pressed.releases();
        session.releasing += releases.len();
        for (method, params) in releases {
            let pending = Pending::Released(id.to_owned());
            self.own(method, Some(&params), pending, Some(id));
        }
    }

    /// A command of this session has ended. Whether its permit is kept, since something is held down.
    pub(crate) fn keeps(&mut self, within: &str, permit: Permit) -> bool {
        let Some(session) = self.sessions.get_mut(within) else {
            return false;
        };
        let held = !session.pressed.is_empty() || session.releasing > 0;
        if held && session.kept.is_none() {
            session.kept = Some(permit);
            return true;
        }
        false
    }

    /// Gives back the permit that was kept in a session, if nothing is held down there any more.
    pub(crate) fn let_kept(&mut self, within: &str) {
        if let Some(session) = self.sessions.get_mut(within)
            && session.pressed.is_empty()
            && session.releasing == 0
        {
            self.effects
                .extend(session.kept.take().map(Effect::Complete));
        }
    }

    /// A release has been answered, or its session has ended.
    pub(crate) fn released(&mut self, within: &str) {
        if let Some(session) = self.sessions.get_mut(within) {
            session.releasing = session.releasing.saturating_sub(1);
        }
        self.let_kept(within);
    }

    /// A takeover has waited long enough: cuts off what is under way.
    pub fn cut_off(&mut self) {
        self.cutting = true;
        self.crashing.clear();
        self.renewed.clear();
        for within in self.running(|_| true) {
            self.let_go(&within);
            let session = self.sessions.get_mut(&within);
            if session.is_some_and(|session| matches!(session.dialog, Some(Dialog::Told))) {
                let params = json!({"accept": false});
                let method = "Page.handleJavaScriptDialog";
                self.own(method, Some(&params), Pending::Ignored, Some(&within));
            }
        }
        // A slow handler may be what keeps input from being answered.
        for within in self.running(|asked| matches!(asked.kind, Kind::Script | Kind::Input)) {
            self.terminate(&within, Pending::Ignored);
        }
        for within in self.running(|asked| asked.kind == Kind::Load) {
            self.own("Page.stopLoading", None, Pending::Ignored, Some(&within));
        }
        self.guard();
    }

    /// What was cut off has had its time: what only reads is given up. Its client is told so, and its late
    /// answer goes nowhere.
    pub fn settle(&mut self) {
        let reads = self.table.asked().filter(|asked| asked.observes);
        let given_up = reads.filter_map(Asked::give_up).collect();
        self.interrupted(given_up);
    }

    /// The browser has ended, and everything with it.
    pub fn ended(&mut self) {
        let given_up = self.table.asked().filter_map(Asked::give_up).collect();
        self.interrupted(given_up);
        let kept = self.sessions.values_mut();
        let kept = kept.filter_map(|session| session.kept.take());
        let left = self.left.drain(..).map(|left| left.permit);
        self.effects.extend(kept.chain(left).map(Effect::Complete));
    }

    /// Tells clients that these commands were cut off.
    pub(crate) fn interrupted(&mut self, mut given_up: Vec<GivenUp>) {
        given_up.sort_unstable_by_key(|(.., permit)| *permit);
        for (client, id, session, permit) in given_up {
            self.tell_cut_off(client, id, session.as_deref());
            self.effects.push_back(Effect::Complete(permit));
        }
    }

    /// Control has left the agents. What clients have stopped goes on without them, and what is still under
    /// way, since control was paused, is cut off.
    pub fn close(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        self.release();
        self.thaw();
        if self.is_busy() {
            self.cut_off();
        }
        // A trace has pictures in it.
        for within in std::mem::take(&mut self.tracing).into_keys() {
            self.own("Tracing.end", None, Pending::Ignored, Some(&within));
        }
        let mut sessions: Vec<String> = self.sessions.keys().cloned().collect();
        sessions.sort_unstable();
        for id in sessions {
            self.let_go(&id);
            self.take_out_scripts(&id);
            let settings = self.sessions.get(&id);
            let settings = settings.map_or_else(Vec::new, |session| session.clear_the_way());
            for (method, params) in settings {
                self.own(method, Some(&params), Pending::Ignored, Some(&id));
            }
        }
        self.load_anew();
    }

    /// Control is with the agents, be it that a takeover has come to nothing. They are told of what has
    /// begun meanwhile.
    pub fn open(&mut self) {
        self.cutting = false;
        self.unguard();
        self.load_anew();
        if !std::mem::replace(&mut self.closed, false) {
            return;
        }
        let helped = self.sessions.iter_mut();
        let helped = helped.filter_map(|(id, tab)| std::mem::take(&mut tab.helped).then_some(id));
        let helped: BTreeSet<String> = helped.cloned().collect();
        for tab in &helped {
            // The client attaches to the page by itself.
            let params = json!({"autoAttach": false, "waitForDebuggerOnStart": false});
            let method = "Target.setAutoAttach";
            self.own(method, Some(&params), Pending::Ignored, Some(tab));
        }
        // What a session has begun in comes before it.
        let sessions = self.sessions.iter();
        let mut sessions: Vec<(u64, String)> = sessions
            .map(|(id, session)| (session.number, id.clone()))
            .collect();
        sessions.sort_unstable();
        for (_, id) in sessions {
            let Some(session) = self.sessions.get_mut(&id) else {
                continue;
            };
            if session
                .parent
                .as_ref()
                .is_some_and(|tab| helped.contains(tab))
            {
                continue;
            }
            let client = session.client;
            let mut events: Vec<Vec<u8>> = session.untold.take().into_iter().collect();
            if std::mem::take(&mut session.missed_changes) {
                // What it knows of the page's tree may be wrong.
                events.push(message::event("DOM.documentUpdated", "{}", Some(&id)));
            }
            session.dialog = match session.dialog.take() {
                Some(Dialog::Untold(event)) => {
                    events.push(event);
                    Some(Dialog::Told)
                }
                dialog => dialog,
            };
            let settings = session.settings();
            let events = events.into_iter();
            let events = events.map(|event| Effect::ToClient(client, event));
            self.effects.extend(events);
            for (method, params) in settings {
                self.set_again(method, &params, &id);
            }
            // Otherwise whoever enables them would be told what pages have said in human time.
            for method in ["Runtime.discardConsoleEntries", "Log.clear"] {
                self.own(method, None, Pending::Ignored, Some(&id));
            }
            self.put_in_scripts(&id);
        }
    }

    /// Makes a setting of a client's hold again.
    fn set_again(&mut self, method: &str, params: &RawValue, within: &str) {
        let number = self.table.add(Pending::Ignored);
        let command = message::command(number, method, Some(params), Some(within));
        self.effects.push_back(Effect::ToBrowser(command));
    }

    /// Whether control is not with the agents.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Lets everything go on that a session holds up.
    pub(crate) fn let_go(&mut self, id: &str) {
        let session = self.sessions.get_mut(id);
        let commands = session.map_or_else(Vec::new, |session| session.let_go());
        for (method, params) in commands {
            self.own(method, params.as_ref(), Pending::Ignored, Some(id));
        }
    }

    /// The sessions in which clients' commands with a permit are under way.
    pub(crate) fn running(&mut self, which: impl Fn(&Asked) -> bool) -> Vec<String> {
        let asked = self.table.asked();
        let asked = asked.filter(|asked| asked.permit.is_some() && which(asked));
        let mut within: Vec<String> = asked.map(|asked| asked.within.clone()).collect();
        within.sort_unstable();
        within.dedup();
        within
    }

    /// Ends the script that runs in a session. `heard` is answered when none runs any more.
    pub(crate) fn terminate(&mut self, within: &str, heard: Pending) {
        let method = "Runtime.terminateExecution";
        self.own(method, None, Pending::Ignored, Some(within));
        // If none runs, the next would be ended: this one, and not the person's click.
        let params = json!({"expression": "0"});
        let method = "Runtime.evaluate";
        self.own(method, Some(&params), heard, Some(within));
    }
}
