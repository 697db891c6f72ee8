//! The browser's own pages: its settings, developer tools and extensions, and the parts of its window.
//!
//! Scripts in them could speak the protocol past the gate, open a port, or see what a person types into the
//! address bar. Clients open none of them. A person may: what is a tab then is a web page again as soon as
//! the person goes on to one, so clients stay attached, but do nothing in it until then. The rest never is
//! one, and no client stays attached to it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::documents;
use crate::gate::{Effect, Gate, Held, Permit};
use crate::message::{self, Command, OfTarget, read};
use crate::table::Pending;

/// Schemes of pages that are not the browser's own, and of the page that it shows in place of one that
/// failed.
const ORDINARY: [&str; 8] = [
    "about",
    "blob",
    "chrome-error",
    "data",
    "file",
    "http",
    "https",
    "javascript",
];

/// What a target with an address of the browser's own is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    /// A tab, or the page in it.
    Tab,
    /// Something that never shows a web page.
    Part,
}

/// What of its own the browser shows in this target, if anything.
pub(crate) fn own(of: &OfTarget<'_>) -> Option<Own> {
    if of.r#type == "browser_ui" {
        return Some(Own::Part);
    }
    let scheme = scheme(&of.url)?;
    let is_tab = matches!(of.r#type.as_ref(), "page" | "tab") && scheme != "devtools";
    (!ORDINARY.contains(&scheme.as_str())).then_some(if is_tab { Own::Tab } else { Own::Part })
}

/// The scheme of an address, if it has one, read as browsers read it: blanks before it and ends of lines in
/// it count for nothing. Of a page's source, that of the page.
fn scheme(address: &str) -> Option<String> {
    let seen = address.trim_start_matches(|letter: char| letter <= ' ');
    let seen: String = seen
        .chars()
        .filter(|letter| !matches!(letter, '\t' | '\n' | '\r'))
        .collect();
    let mut rest = seen.as_str();
    loop {
        let (scheme, after) = rest.split_once(':')?;
        let scheme = scheme.to_ascii_lowercase();
        if scheme != "view-source" {
            return Some(scheme);
        }
        rest = after;
    }
}

/// Whether a command passes in a tab that shows a page of the browser's own: what leads away from it, or
/// sets up a client for the pages that follow.
fn passes(method: &str) -> bool {
    const DOMAINS: [&str; 8] = [
        "Browser",
        "Console",
        "Emulation",
        "Log",
        "Network",
        "Performance",
        "Security",
        "Target",
    ];
    const COMMANDS: [&str; 19] = [
        documents::ADD,
        documents::REMOVE,
        "Fetch.continueRequest",
        "Fetch.failRequest",
        "Input.setInterceptDrags",
        "Page.bringToFront",
        "Page.captureScreenshot",
        "Page.close",
        "Page.createIsolatedWorld",
        "Page.getFrameTree",
        "Page.getNavigationHistory",
        "Page.navigate",
        "Page.navigateToHistoryEntry",
        "Page.setBypassCSP",
        "Page.setFontFamilies",
        "Page.setInterceptFileChooserDialog",
        "Page.setLifecycleEventsEnabled",
        "Page.stopLoading",
        "Runtime.addBinding",
    ];
    let (domain, command) = method.split_once('.').unwrap_or_default();
    matches!(command, "enable" | "disable")
        || DOMAINS.contains(&domain)
        || COMMANDS.contains(&method)
}

/// What a command opens or attaches to.
#[derive(Debug, Default, Deserialize)]
struct LeadsTo<'a> {
    #[serde(borrow, default)]
    url: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "targetId")]
    target: Option<Cow<'a, str>>,
}

/// What the browser says of its targets.
#[derive(Debug, Deserialize)]
struct OfAny<'a> {
    #[serde(borrow, default, rename = "targetInfo")]
    of: Option<OfTarget<'a>>,
    #[serde(borrow, default, rename = "targetId")]
    target: Option<Cow<'a, str>>,
}

impl Gate {
    /// Asks the browser to tell of all that there is and where it is.
    pub(crate) fn follow_targets(&mut self) {
        let params = json!({"discover": true, "filter": [{}]});
        let method = "Target.setDiscoverTargets";
        self.own(method, Some(&params), Pending::Ignored, None);
    }

    /// The browser tells of a target.
    pub(crate) fn target_told(&mut self, method: &str, params: Option<&RawValue>) {
        let Some(told) = read::<OfAny<'_>>(params) else {
            return;
        };
        match (method, told) {
            ("Target.targetCreated" | "Target.targetInfoChanged", OfAny { of: Some(of), .. }) => {
                self.keep_in_mind(&of);
            }
            (
                "Target.targetCrashed",
                OfAny {
                    target: Some(target),
                    ..
                },
            ) => self.has_crashed(target.as_ref()),
            (
                "Target.targetDestroyed",
                OfAny {
                    target: Some(target),
                    ..
                },
            ) => {
                self.built_in.remove(target.as_ref());
                self.frozen.remove(target.as_ref());
                self.dead.remove(target.as_ref());
            }
            _ => {}
        }
    }

    /// Keeps in mind whether a target is the browser's own, and says what it is.
    pub(crate) fn keep_in_mind(&mut self, of: &OfTarget<'_>) -> Option<Own> {
        let own = own(of);
        match own {
            Some(own) => drop(self.built_in.insert(of.target.clone().into_owned(), own)),
            None => drop(self.built_in.remove(of.target.as_ref())),
        }
        own
    }

    /// Why a command that opens something, or attaches to it, never passes.
    pub(crate) fn leads_past(&self, command: &Command<'_>) -> Option<String> {
        let method = command.method.as_ref();
        let opens = matches!(method, "Page.navigate" | "Target.createTarget");
        let attaches = matches!(method, "Target.attachToTarget" | "Target.autoAttachRelated");
        if !opens && !attaches {
            return None;
        }
        let LeadsTo { url, target } = match command.params {
            None => LeadsTo::default(),
            Some(params) => match read(Some(params)) {
                Some(leads_to) => leads_to,
                None => return Some(format!("the parameters of {method} cannot be read")),
            },
        };
        let scheme = url.filter(|_| opens).and_then(|url| scheme(&url));
        if let Some(scheme) = scheme.filter(|scheme| !ORDINARY.contains(&scheme.as_str())) {
            return Some(format!(
                "{method} opens no `{scheme}:` addresses on a browser desktop, since the browser's own pages lead past its gate; give the address of a web page"
            ));
        }
        let target = target.filter(|_| attaches)?;
        (self.built_in.get(target.as_ref()) == Some(&Own::Part)).then(|| {
            format!("{method} does not attach to the browser's own parts (developer tools, extensions, its window); attach to a web page")
        })
    }

    /// Whether a command may be carried out in what its session shows now. If not, its client is told so.
    pub(crate) fn may_touch(&mut self, held: &Held, permit: Permit) -> bool {
        if passes(held.method()) || !self.shows_own(&held.within) {
            return true;
        }
        let text = "this tab shows a page of the browser's own, in which only a person acts; open the address of a web page with Page.navigate";
        let session = held.session.as_deref();
        let answer = message::refusal(held.id, "bad_params", text, Map::new(), session);
        self.effects
            .push_back(Effect::ToClient(held.client, answer));
        self.effects.push_back(Effect::Complete(permit));
        false
    }

    /// Parameters by which a script for new documents does not begin in a page of the browser's own that is
    /// there already; none if they can stay as they are.
    pub(crate) fn only_in_new_documents(&self, held: &Held) -> Option<Box<RawValue>> {
        if !self.shows_own(&held.within) {
            return None;
        }
        let mut params: Value = serde_json::from_str(held.params.as_deref()?.get()).ok()?;
        params.as_object_mut()?.remove("runImmediately")?;
        serde_json::value::to_raw_value(&params).ok()
    }

    fn shows_own(&self, within: &str) -> bool {
        let session = self.sessions.get(within);
        session.is_some_and(|session| self.built_in.contains_key(&session.target))
    }

    /// A session has begun with a part of the browser's own. It goes on without its client, who sees it come
    /// and go: some wait for all that is there to be attached.
    pub(crate) fn turn_away(&mut self, parent: &str, session: &str) {
        let go_on = "Runtime.runIfWaitingForDebugger";
        self.own(go_on, None, Pending::Ignored, Some(session));
        let params = json!({"sessionId": session});
        let detach = "Target.detachFromTarget";
        self.own(detach, Some(&params), Pending::Ignored, Some(parent));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target<'a>(kind: &'a str, url: &'a str) -> OfTarget<'a> {
        OfTarget {
            target: "t".into(),
            r#type: kind.into(),
            url: url.into(),
        }
    }

    #[test]
    fn the_browsers_own_pages_are_known_by_their_address() {
        for address in [
            "chrome://inspect/#remote-debugging",
            "chrome:inspect",
            " \u{1}Chrome://settings",
            "chr\nome://version",
            "view-source:chrome://version",
            "View-Source:view-source:CHROME://version",
            "chrome-extension://abc/page.html",
            "chrome-untrusted://print/",
        ] {
            assert_eq!(own(&target("page", address)), Some(Own::Tab), "{address:?}");
            assert_eq!(
                own(&target("iframe", address)),
                Some(Own::Part),
                "{address:?}"
            );
        }
        for address in [
            "",
            "chrome",
            "about:blank",
            "https://chrome:1/",
            "http://x/?chrome://y",
            "view-source:https://x/",
            "data:text/html,chrome://x",
            "chrome-error://chromewebdata/",
        ] {
            assert_eq!(own(&target("page", address)), None, "{address:?}");
        }
        let tools = target("page", "devtools://devtools/bundled/devtools_app.html");
        assert_eq!(own(&tools), Some(Own::Part));
        assert_eq!(own(&target("browser_ui", "")), Some(Own::Part));
    }

    #[test]
    fn what_acts_in_a_page_does_not_pass_in_the_browsers_own() {
        for method in [
            "Runtime.evaluate",
            "Runtime.callFunctionOn",
            "Debugger.evaluateOnCallFrame",
            "Input.dispatchKeyEvent",
            "DOM.setOuterHTML",
            "Page.setDocumentContent",
            "Page.reload",
            "Fetch.fulfillRequest",
            "",
        ] {
            assert!(!passes(method), "{method}");
        }
        for method in ["Page.navigate", "Page.enable", "Target.setAutoAttach"] {
            assert!(passes(method), "{method}");
        }
    }
}
