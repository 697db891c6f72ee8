//! Pages that clients freeze (`Page.setWebLifecycleState`).
//!
//! Such a page paints nothing and hears nothing, also after whoever froze it has left. So it is made active
//! again when control leaves the agents, over a session of the gate's own. It is not frozen again afterwards: by
//! then it may show something else.
//!
//! What was tried: the browser hides a page that it freezes, and a page that is active again stays hidden while its
//! tab is in front all the same. Only another tab before it and back shows it. So before a page is frozen
//! the gate asks whether it is shown, lest it bring a tab to the front that was not there.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::gate::{Effect, Gate};
use crate::message::{FromBrowser, OfSession, read};
use crate::table::Pending;

pub(crate) const SET: &str = "Page.setWebLifecycleState";

/// A page is asked whether it is shown before this command is sent.
#[derive(Debug)]
pub(crate) struct Look {
    /// The command by the gate's number, and as it is sent.
    number: u32,
    command: Vec<u8>,
    target: String,
}

/// A frozen page that is made active again.
#[derive(Debug)]
pub(crate) struct Thaw {
    target: String,
    shown: bool,
}

#[derive(Debug, Deserialize)]
struct Lifecycle<'a> {
    /// Without it the browser refuses the command itself.
    #[serde(borrow, default)]
    state: Cow<'a, str>,
}

/// What `Runtime.evaluate` came to.
#[derive(Debug, Deserialize)]
struct Evaluated<'a> {
    #[serde(borrow)]
    result: Text<'a>,
}

#[derive(Debug, Deserialize)]
struct Text<'a> {
    #[serde(borrow)]
    value: Cow<'a, str>,
}

/// What was created.
#[derive(Debug, Deserialize)]
struct Created<'a> {
    #[serde(borrow, rename = "targetId")]
    target: Cow<'a, str>,
}

/// Whether it can be read which state a command sets.
pub(crate) fn can_be_noted(params: Option<&RawValue>) -> bool {
    read::<Lifecycle<'_>>(params).is_some()
}

impl Gate {
    /// Sends a client's command that sets the state of a page, once what has to be known before is known.
    pub(crate) fn set_state(
        &mut self,
        number: u32,
        within: &str,
        params: Option<&RawValue>,
        command: Vec<u8>,
    ) {
        let active = read(params).is_some_and(|set: Lifecycle<'_>| set.state == "active");
        match self.sessions.get(within) {
            Some(session) if !active => {
                let look = Look {
                    number,
                    command,
                    target: session.target.clone(),
                };
                let params =
                    json!({"expression": "document.visibilityState", "returnByValue": true});
                let method = "Runtime.evaluate";
                self.own(method, Some(&params), Pending::Look(look), Some(within));
            }
            session => {
                // One that was shown stays hidden all the same.
                if let Some(session) = session
                    && self.frozen.get(&session.target) == Some(&false)
                {
                    self.frozen.remove(&session.target);
                }
                self.effects.push_back(Effect::ToBrowser(command));
            }
        }
    }

    /// The page has answered whether it is shown. The command goes on if its turn is not over.
    pub(crate) fn looked(&mut self, look: Look, answer: &FromBrowser<'_>) {
        let Look {
            number,
            command,
            target,
        } = look;
        if self.closed || self.cutting {
            let late = self.table.withdraw(number);
            let given_up = late.and_then(|mut asked| asked.give_up());
            self.interrupted(given_up.into_iter().collect());
        } else if self.table.has(number) {
            let seen: Option<Evaluated<'_>> = read(answer.result);
            let shown = seen.is_some_and(|seen| seen.result.value == "visible");
            // One that is frozen already is hidden by that.
            *self.frozen.entry(target).or_default() |= shown;
            self.effects.push_back(Effect::ToBrowser(command));
        }
    }

    /// Makes the pages active again that clients have frozen.
    pub(crate) fn thaw(&mut self) {
        for (target, shown) in std::mem::take(&mut self.frozen) {
            let params = json!({"targetId": target, "flatten": true});
            let pending = Pending::Thaw(Thaw { target, shown });
            self.own("Target.attachToTarget", Some(&params), pending, None);
        }
    }

    /// The browser has answered that the gate is attached to a frozen page, if that is still there.
    pub(crate) fn thaws(&mut self, thaw: Thaw, answer: &FromBrowser<'_>) {
        let Some(OfSession { session, .. }) = read(answer.result) else {
            return;
        };
        let params = json!({"state": "active"});
        self.own(SET, Some(&params), Pending::Ignored, Some(&session));
        self.on_browser("Target.detachFromTarget", "sessionId", &session);
        if thaw.shown {
            // The new tab is to be in the page's window.
            self.on_browser("Target.activateTarget", "targetId", &thaw.target);
            let params = json!({"url": "about:blank"});
            let pending = Pending::Cover(thaw.target);
            self.own("Target.createTarget", Some(&params), pending, None);
        }
    }

    /// The browser has answered that another tab is before the page.
    pub(crate) fn covered(&mut self, target: &str, answer: &FromBrowser<'_>) {
        if let Some(Created { target: cover }) = read(answer.result) {
            self.on_browser("Target.activateTarget", "targetId", target);
            self.on_browser("Target.closeTarget", "targetId", &cover);
        }
    }

    fn on_browser(&mut self, method: &str, of: &str, id: &str) {
        let params = json!({of: id});
        self.own(method, Some(&params), Pending::Ignored, None);
    }
}
