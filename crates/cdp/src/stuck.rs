//! The last step of a drain: what does not end though it was cut off is ended with its page.
//!
//! A page whose thread waits inside the browser (a synchronous `XMLHttpRequest` to a server that never answers) hears
//! nothing, and nothing stops a long gesture. What was tried: `Page.reload` ends the gesture, but of a page that hears
//! nothing the browser only says that it has. The old page waits on, the new one cannot come before it has ended,
//! and the browser then refuses to end it in any other way. A session that begins when the page hears nothing already
//! does not reach it either. So the page is crashed, in the session of the command itself, which the page's
//! process hears on another thread; then it is loaded anew, for the person. Scripts and input are over when the browser
//! says that the page has crashed. What else was under way there it answers when another page is loaded.

use serde_json::{Map, json};

use crate::gate::{ClientId, Effect, Gate};
use crate::message::{self, FromBrowser, OfSession, read};
use crate::pressed::Pressed;
use crate::table::{Asked, Kind, Pending};

/// A client that has left, and whose sessions are kept for as long as a page may hear nothing.
#[derive(Debug)]
pub(crate) struct Parting {
    /// The session that stands for its connection.
    root: String,
    /// The sessions in which its scripts were told to end, and that have not answered since.
    silent: Vec<String>,
}

/// Clients that may part at the same time; what there are more go at once.
const MAX_PARTING: usize = 64;

impl Gate {
    /// What was cut off has had all its time. Each page in which something is under way all the same is crashed, once in
    /// a drain, and a session in which only the browser itself is at work is ended. Clients are told so;
    /// permits wait for the browser.
    pub fn end_stuck(&mut self) {
        let mut pages = self.running(|asked| asked.kind != Kind::Resource);
        let held = self.sessions.iter();
        let held = held.filter(|(_, session)| session.kept.is_some());
        pages.extend(held.map(|(id, _)| id.clone()));
        pages.sort_unstable();
        pages.dedup();
        for within in &pages {
            self.crash(within);
        }
        for within in self.running(|asked| asked.kind == Kind::Resource) {
            // A crash does not end these, and the end of the session would hide whether the others have ended.
            let parent = self.sessions.get(&within);
            let parent = parent.and_then(|session| session.parent.clone());
            if let Some(parent) = parent.filter(|_| !pages.contains(&within)) {
                self.tell_interrupted(|asked| asked.within == within);
                let params = json!({"sessionId": within});
                let method = "Target.detachFromTarget";
                self.own(method, Some(&params), Pending::Ignored, Some(&parent));
            }
        }
    }

    /// Crashes the page that a session is attached to, or whose worker it is.
    fn crash(&mut self, within: &str) {
        let mut page = within;
        while let Some(session) = self.sessions.get(page)
            && session.of_worker
            && let Some(parent) = &session.parent
        {
            page = parent;
        }
        let Some(session) = self.sessions.get(page) else {
            // The connection itself has no page.
            return;
        };
        let page = page.to_owned();
        let target = session.target.clone();
        if self.renewed.contains(&target) {
            return;
        }
        if let Some(renew) = self.dead.get_mut(&target) {
            // What is asked of a page that has crashed is answered when it is loaded anew.
            *renew = true;
            self.tell_interrupted(|asked| asked.within == within);
            self.load_anew();
            return;
        }
        // Of several sessions of one page, it may hear only one.
        if !self.crashing.insert((target, page.clone())) {
            return;
        }
        self.tell_interrupted(|asked| asked.within == within);
        // It would refuse to crash while it loads another.
        self.own("Page.stopLoading", None, Pending::Ignored, Some(&page));
        self.own("Page.crash", None, Pending::Ignored, Some(&page));
    }

    /// A page has crashed, and with it its scripts and what input they were slow to take, though the browser answers
    /// only when another page is loaded there. If this, or the crash of a page in the same process, was the gate's doing, it is loaded anew;
    /// once in a drain, since it may crash by itself too.
    pub(crate) fn has_crashed(&mut self, target: &str) {
        self.unguard_in(target);
        let sessions = &mut self.sessions;
        let interrupted = self.cutting || self.closed;
        let mut given_up = Vec::new();
        for asked in self.table.asked() {
            let within = sessions.get(&asked.within);
            let over = matches!(asked.kind, Kind::Script | Kind::Input);
            if !over || within.is_none_or(|it| it.target != target) {
                continue;
            }
            if interrupted && !asked.answered {
                given_up.extend(asked.give_up());
            } else {
                // Its client gets the browser's answer, or has got the gate's.
                self.effects
                    .extend(asked.permit.take().map(Effect::Complete));
            }
        }
        for session in sessions.values_mut() {
            if session.target == target {
                session.pressed = Pressed::default();
                session.releasing = 0;
                self.effects
                    .extend(session.kept.take().map(Effect::Complete));
            }
        }
        self.interrupted(given_up);
        let renew = !self.crashing.is_empty() && !self.renewed.contains(target);
        self.dead.insert(target.to_owned(), renew);
        if self.closed || !self.cutting {
            self.load_anew();
        }
    }

    /// Loads the pages anew that are to be. What clients have registered for new documents is to be out before, or
    /// control with them.
    pub(crate) fn load_anew(&mut self) {
        let renew = self.dead.extract_if(.., |_, renew| *renew);
        let renew: Vec<String> = renew.map(|(target, _)| target).collect();
        for target in renew {
            let params = json!({"targetId": target, "flatten": true});
            let pending = Pending::LoadAnew;
            self.own("Target.attachToTarget", Some(&params), pending, None);
            self.renewed.insert(target);
        }
    }

    /// A client has loaded something in this session.
    pub(crate) fn has_loaded(&mut self, within: &str) {
        if let Some(session) = self.sessions.get(within) {
            self.dead.remove(&session.target);
        }
    }

    /// The browser has answered that the gate is attached to a page that has crashed, if that is still there.
    pub(crate) fn loads_anew(&mut self, answer: &FromBrowser<'_>) {
        let Some(OfSession { session, .. }) = read(answer.result) else {
            return;
        };
        self.own("Page.reload", None, Pending::Ignored, Some(&session));
        let params = json!({"sessionId": session});
        let method = "Target.detachFromTarget";
        self.own(method, Some(&params), Pending::Ignored, None);
    }

    /// A client has left while its scripts run in these sessions. They stay until each has answered: a page that hears
    /// nothing can be crashed in no other.
    pub(crate) fn part(&mut self, client: ClientId, root: String, running: Vec<String>) {
        if running.is_empty() || self.parting.len() >= MAX_PARTING {
            self.detach(client, &root);
            return;
        }
        let silent = running;
        self.parting.insert(client, Parting { root, silent });
    }

    /// The client that has left whose connection this session stands for.
    pub(crate) fn parts_from(&self, root: &str) -> Option<ClientId> {
        let mut parting = self.parting.iter();
        let parting = parting.find(|(_, parting)| parting.root == root);
        parting.map(|(client, _)| *client)
    }

    /// A session of a client that has left has answered, or has ended.
    pub(crate) fn has_heard(&mut self, client: ClientId, within: &str) {
        let Some(parting) = self.parting.get_mut(&client) else {
            return;
        };
        parting.silent.retain(|silent| silent != within);
        if parting.silent.is_empty()
            && let Some(Parting { root, .. }) = self.parting.remove(&client)
        {
            self.detach(client, &root);
        }
    }

    /// Tells clients that these commands were interrupted. Their permits go on.
    fn tell_interrupted(&mut self, which: impl Fn(&Asked) -> bool) {
        let asked = self.table.asked();
        let asked = asked.filter(|asked| asked.permit.is_some() && which(asked));
        let mut told: Vec<_> = asked.filter_map(|asked| asked.tell()).collect();
        told.sort_unstable_by_key(|(client, id, _)| (*client, *id));
        for (client, id, session) in told {
            self.tell_cut_off(client, id, session.as_deref());
        }
    }

    /// Tells a client that its command was cut off.
    pub(crate) fn tell_cut_off(&mut self, client: ClientId, id: i64, session: Option<&str>) {
        if self.clients.contains_key(&client) {
            let text = "a person took over the desktop, so this was cut off; what it had done stays done. Wait for the hand-back, look again, and go on from what you see";
            let answer = message::refusal(id, "interrupted_by_human", text, Map::new(), session);
            self.effects.push_back(Effect::ToClient(client, answer));
        }
    }
}
