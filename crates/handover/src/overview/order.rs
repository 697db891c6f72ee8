//! In what order sessions are shown.

use std::cmp::Reverse;

use handover_protocol::{Control, SessionId};

use super::session::Session;

/// How urgent a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    /// An agent asks for a person.
    Asks,
    /// A person has control somewhere, and may have forgotten it.
    Held,
    /// The rest.
    Lives,
    /// Its host has ended.
    Ended,
}

/// What a session is sorted by: the most urgent first, then the newest, then by name.
pub fn rank(session: &Session) -> impl Ord + use<> {
    let urgency = if session.has_ended() {
        Urgency::Ended
    } else if session.needs() > 0 {
        Urgency::Asks
    } else if session
        .desktops
        .iter()
        .any(|desktop| desktop.control == Control::Human)
    {
        Urgency::Held
    } else {
        Urgency::Lives
    };
    let id: SessionId = session.id().clone();
    (urgency, Reverse(session.manifest.start_ticks), id)
}
