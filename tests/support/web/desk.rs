//! Where most promises of the web console begin: a session, its console, and a person with a browser.

use serde_json::{Value, json};

use super::{Chromium, Page};
use crate::support::{Console, Session};

/// A person's desk. Ended in this order: the browser, the console, the session. What a test starts on the
/// session's desktop comes after it, and so ends before.
pub struct Desk {
    /// The browser.
    pub chromium: Chromium,
    /// The console.
    pub console: Console,
    /// The session, of which `d1` is the desktop.
    pub session: Session,
}

impl Desk {
    /// One at a session with a desktop.
    pub fn up() -> Self {
        Self::at(Session::up())
    }

    /// One at this session.
    pub fn at(session: Session) -> Self {
        let console = Console::start(&session.place, &[]);
        let chromium = Chromium::start(&session.place);
        Self {
            chromium,
            console,
            session,
        }
    }

    /// The first tab, at the overview.
    pub fn overview(&self) -> Page {
        self.chromium.opens(&self.console.url())
    }

    /// The first tab, at `d1`.
    pub fn tab(&self) -> Page {
        self.tab_with(json!({}))
    }

    /// The first tab, at `d1`, where control is taken with `terms` added to the parameters of
    /// `control.acquire`.
    pub fn tab_with(&self, terms: Value) -> Page {
        self.chromium
            .at_desktop_with(&self.console.url(), &self.session, terms)
    }

    /// A further tab of the same person at `d1`.
    pub fn another(&self) -> Page {
        self.another_with(json!({}))
    }

    /// A further tab of the same person at `d1`, with `terms` as above.
    pub fn another_with(&self, terms: Value) -> Page {
        self.chromium
            .another_at_desktop(&self.console, &self.session, terms)
    }
}
