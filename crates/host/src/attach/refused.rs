//! Refused calls in the record: who called what and which code it got, never with what arguments.

use handover_protocol::{DesktopId, ErrorCode, Method, Refusal};
use handover_store::{Actor, NewEvent, Source, Store};

use crate::callers::Caller;
use crate::system::creds::Sender;

/// Why a call came to nothing, and whether that is in the record already.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) refusal: Refusal,
    /// The session and its desktops record what they refuse themselves, with the epoch.
    pub(super) recorded: bool,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self {
            refusal,
            recorded: false,
        }
    }
}

impl Refused {
    /// A refusal that the session or a desktop has recorded.
    pub(super) fn by_session(refusal: Refusal) -> Self {
        Self {
            refusal,
            recorded: true,
        }
    }
}

/// Records a refusal by the server. Does not wait.
pub(super) fn record(
    store: &Store,
    caller: &Caller,
    method: Method,
    desktop: Option<DesktopId>,
    code: ErrorCode,
) {
    if method != Method::Ping {
        store.append_soon(describe(caller.event(kind(method)), method, desktop, code));
    }
}

/// Records a call whose sender could not be told to be anybody: all that is known is what the kernel
/// said of it.
pub(super) fn record_unknown(store: &Store, sender: Sender, method: Method, code: ErrorCode) {
    // It may be anything, so it is credited with the least.
    let event = NewEvent::new(kind(method), Source::App).actor(Actor {
        uid: sender.uid,
        pid: sender.pid,
        agent: None,
        via: String::new(),
        evidence: None,
    });
    store.append_soon(describe(event, method, None, code));
}

fn describe(
    mut event: NewEvent,
    method: Method,
    desktop: Option<DesktopId>,
    code: ErrorCode,
) -> NewEvent {
    event.desktop = desktop.map(|desktop| desktop.0);
    let event = event
        .field("outcome", "refused")
        .field("code", code.as_str());
    if event.kind == CALL_REFUSED {
        event.field("method", method.name())
    } else {
        event
    }
}

/// The kind of refusals of calls that have none of their own.
const CALL_REFUSED: &str = "call_refused";

/// The kind under which the act would have been recorded.
fn kind(method: Method) -> &'static str {
    match method {
        Method::DesktopClick => "desktop_click",
        Method::DesktopMove => "desktop_move",
        Method::DesktopDoubleClick => "desktop_double_click",
        Method::DesktopScroll => "desktop_scroll",
        Method::DesktopDrag => "desktop_drag",
        Method::DesktopType => "desktop_type",
        Method::DesktopKey => "desktop_key",
        Method::DesktopLaunch => "desktop_launch",
        Method::DesktopScreenshot => "desktop_screenshot",
        Method::DesktopNew => "desktop_new",
        Method::DesktopDestroy => "desktop_destroy",
        _ => CALL_REFUSED,
    }
}
