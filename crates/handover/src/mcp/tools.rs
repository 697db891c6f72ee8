//! The tools and how they are presented to an agent.

use std::sync::{Arc, LazyLock};

use handover_protocol::Method;
use rmcp::handler::server::tool::schema_for_type;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;

use super::arguments;

/// A tool of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Passes its arguments to the method of the host that does the same.
    Desktop(Method),
    /// `desktop_screenshot`, whose answer carries the picture.
    Screenshot,
    /// `takeover_status`, whose answer carries the last hand-back and its picture.
    TakeoverStatus,
    /// `request_human`.
    RequestHuman,
    /// `request_status`, which may wait.
    RequestStatus,
    /// `agent_spawn`.
    AgentSpawn,
    /// `agent_list`.
    AgentList,
    /// `agent_steer`.
    AgentSteer,
    /// `agent_abort`.
    AgentAbort,
    /// `agent_result`.
    AgentResult,
    /// `agent_wait`, which may wait.
    AgentWait,
}

impl Act {
    /// The method of the host behind the tool.
    pub(super) const fn method(self) -> Method {
        match self {
            Self::Desktop(method) => method,
            Self::Screenshot => Method::DesktopScreenshot,
            Self::TakeoverStatus => Method::ControlStatus,
            Self::RequestHuman => Method::RequestHuman,
            Self::RequestStatus => Method::RequestStatus,
            Self::AgentSpawn => Method::Spawn,
            Self::AgentList => Method::List,
            Self::AgentSteer => Method::Steer,
            Self::AgentAbort => Method::Abort,
            Self::AgentResult | Self::AgentWait => Method::Result,
        }
    }
}

/// One entry of the tool list.
pub(super) struct Entry {
    /// What a call of the tool does.
    pub(super) act: Act,
    /// How the tool is presented.
    pub(super) tool: Tool,
}

impl Entry {
    /// The entry of that name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|entry| entry.tool.name == name)
    }

    /// Every tool, in the order in which they are listed.
    pub(super) fn all() -> &'static [Self] {
        &ALL
    }
}

/// What calling a tool can change, for the hints that clients show to people.
enum Effect {
    /// Nothing.
    Observes,
    /// The desktop, in ways that cannot be foreseen: a click may delete.
    Acts,
    /// Only what a person or another agent is told.
    Asks,
    /// What another agent works at: it ends.
    Ends,
}

static ALL: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    vec![
        entry(
            "desktop_screenshot",
            "Take a screenshot",
            "Takes a screenshot of the desktop and returns it as a PNG image, with its size, path, \
             sha256 and epoch. All coordinates of the other tools are pixels of this picture. Take \
             one before the first click and after every takeover: until then coordinate tools \
             answer `stale_observation`.",
            Effect::Observes,
            Act::Screenshot,
            schema_for_type::<arguments::OnDesktop>(),
        ),
        entry(
            "desktop_windows",
            "List windows",
            "Lists the windows on the desktop with their titles, places and sizes. A browser's \
             window title contains the title of its page.",
            Effect::Observes,
            Act::Desktop(Method::DesktopWindows),
            schema_for_type::<arguments::OnDesktop>(),
        ),
        entry(
            "desktop_launch",
            "Start a program",
            "Starts a program on the desktop and returns its pid and the path of its log at once, \
             without waiting for its window. Take a screenshot or list the windows to see when it \
             is ready.",
            Effect::Acts,
            Act::Desktop(Method::DesktopLaunch),
            schema_for_type::<arguments::Launch>(),
        ),
        entry(
            "desktop_click",
            "Click",
            "Clicks at a point of the desktop.",
            Effect::Acts,
            Act::Desktop(Method::DesktopClick),
            schema_for_type::<arguments::Click>(),
        ),
        entry(
            "desktop_double_click",
            "Double-click",
            "Double-clicks at a point of the desktop.",
            Effect::Acts,
            Act::Desktop(Method::DesktopDoubleClick),
            schema_for_type::<arguments::Click>(),
        ),
        entry(
            "desktop_move",
            "Move the pointer",
            "Moves the pointer to a point without clicking, to hover.",
            Effect::Acts,
            Act::Desktop(Method::DesktopMove),
            schema_for_type::<arguments::Point>(),
        ),
        entry(
            "desktop_scroll",
            "Scroll",
            "Turns the mouse wheel, at a point or where the pointer is.",
            Effect::Acts,
            Act::Desktop(Method::DesktopScroll),
            schema_for_type::<arguments::Scroll>(),
        ),
        entry(
            "desktop_drag",
            "Drag",
            "Presses a button at one point, moves to another and releases it there.",
            Effect::Acts,
            Act::Desktop(Method::DesktopDrag),
            schema_for_type::<arguments::Drag>(),
        ),
        entry(
            "desktop_type",
            "Type text",
            "Types text into the window that has the focus. Click into a field first. Only the \
             length of the text is recorded. Do not type passwords or codes you were given in \
             text; ask a person with request_human instead.",
            Effect::Acts,
            Act::Desktop(Method::DesktopType),
            schema_for_type::<arguments::Type>(),
        ),
        entry(
            "desktop_key",
            "Press keys",
            "Presses a key or a chord, like `Return` or `ctrl+l`.",
            Effect::Acts,
            Act::Desktop(Method::DesktopKey),
            schema_for_type::<arguments::Key>(),
        ),
        entry(
            "takeover_status",
            "Who is in control",
            "Says who controls the desktop (`agent`, `human` or `paused`), the lease of the person \
             in control (holder, since, time left), and the last hand-back: who had control, for \
             how long, their note, the windows opened and closed, and the screenshot at that \
             moment as an image.",
            Effect::Observes,
            Act::TakeoverStatus,
            schema_for_type::<arguments::OnDesktop>(),
        ),
        entry(
            "request_human",
            "Ask for a person",
            "Asks a person for help: to take over the desktop for a step you cannot or must not do \
             (a password, a code, a captcha, a payment, a decision), or to answer a question in \
             text. Returns a requestId at once; then call request_status with waitMs until it is \
             no longer open. While a person is in control your desktop actions answer \
             `human_control_active`.",
            Effect::Asks,
            Act::RequestHuman,
            schema_for_type::<arguments::RequestHuman>(),
        ),
        entry(
            "request_status",
            "Wait for the person",
            "Says what became of a request_human: whether it is still open, was answered (with the \
             text), or was met by a takeover that has ended. Waits up to waitMs (at most 60000) \
             for a change. After a takeover take a fresh screenshot before you act.",
            Effect::Observes,
            Act::RequestStatus,
            schema_for_type::<arguments::RequestStatus>(),
        ),
        entry(
            "agent_spawn",
            "Start an agent",
            "Starts another agent that works for you, on a task of its own, and returns its id and \
             status (`queued` while too many others run) at once. A person can watch, steer and \
             end it. Give the task completely: it does not know your conversation. Then call \
             agent_wait until it has ended, and agent_result for what it came to.",
            Effect::Asks,
            Act::AgentSpawn,
            schema_for_type::<arguments::AgentSpawn>(),
        ),
        entry(
            "agent_list",
            "List your agents",
            "Lists the agents that you started and those that they started: id, name, type, status, \
             parent, task, start, messages that are not read yet, and why an agent takes no \
             messages, if it takes none.",
            Effect::Observes,
            Act::AgentList,
            schema_for_type::<arguments::Nothing>(),
        ),
        entry(
            "agent_steer",
            "Send a message to an agent",
            "Sends a message into a running agent of yours, without stopping its work. Answers with \
             what is known of the message: `accepted` means stored, not yet read; wait for \
             `inserted` or `sent` if it matters that it arrived. An agent that has ended or not \
             begun answers `agent_not_running`, one whose program takes no messages \
             `not_steerable`.",
            Effect::Asks,
            Act::AgentSteer,
            schema_for_type::<arguments::AgentSteer>(),
        ),
        entry(
            "agent_abort",
            "End an agent",
            "Ends an agent of yours, every agent that it started, and all their processes. Messages \
             that it has not read are dropped. Answers when nothing runs any more, with each that \
             ended. What it had written stays.",
            Effect::Ends,
            Act::AgentAbort,
            schema_for_type::<arguments::OneAgent>(),
        ),
        entry(
            "agent_result",
            "What an agent came to",
            "Returns the status of an agent of yours and the last it said: its result once it is \
             `done`, the error if it `failed`. Works also long after its end.",
            Effect::Observes,
            Act::AgentResult,
            schema_for_type::<arguments::OneAgent>(),
        ),
        entry(
            "agent_wait",
            "Wait for an agent",
            "Waits until an agent of yours has ended, or is `waiting` for a person, for at most \
             timeoutMs (60000; 30000 if not given), and returns what agent_result returns, with \
             `ended`. Call it again while `ended` is false; a `waiting` agent goes on by itself when \
             the person has answered or handed back.",
            Effect::Observes,
            Act::AgentWait,
            schema_for_type::<arguments::AgentWait>(),
        ),
    ]
});

fn entry(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    effect: Effect,
    act: Act,
    schema: Arc<JsonObject>,
) -> Entry {
    let hints = ToolAnnotations::with_title(title);
    let hints = match effect {
        Effect::Observes => hints.read_only(true).idempotent(true).open_world(false),
        Effect::Acts => hints
            .read_only(false)
            .destructive(true)
            .idempotent(false)
            .open_world(true),
        Effect::Asks => hints
            .read_only(false)
            .destructive(false)
            .idempotent(false)
            .open_world(true),
        Effect::Ends => hints
            .read_only(false)
            .destructive(true)
            .idempotent(true)
            .open_world(false),
    };
    let schema = plain(Arc::unwrap_or_clone(schema));
    let tool = Tool::new(name, description, schema)
        .with_title(title)
        .with_annotations(hints);
    Entry { act, tool }
}

/// A schema as agents' programs understand it best: what may be left out is not also `null`, and
/// widths of integers, which mean nothing in JSON, are gone. What the comment on a type says is for
/// readers of the code.
fn plain(mut schema: JsonObject) -> JsonObject {
    for name in ["title", "description"] {
        schema.remove(name);
    }
    // Some programs do not understand a tool without arguments unless there is an empty list of them.
    schema
        .entry("properties")
        .or_insert_with(|| Value::Object(JsonObject::new()));
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(|all| all.values_mut()) {
        let Some(property) = property.as_object_mut() else {
            continue;
        };
        property.remove("format");
        if let Some(Value::Array(types)) = property.get_mut("type") {
            types.retain(|name| name != "null");
            if let [one] = types.as_slice() {
                let one = one.clone();
                property.insert("type".to_owned(), one);
            }
        }
        if let Some(items) = property.get_mut("items").and_then(Value::as_object_mut) {
            items.remove("format");
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use handover_protocol::Gate;

    use super::*;

    #[test]
    fn every_tool_passes_the_gate_that_its_hints_promise() {
        for entry in Entry::all() {
            let (name, method) = (&entry.tool.name, entry.act.method());
            let hints = entry.tool.annotations.as_ref();
            let observes = hints.and_then(|hints| hints.read_only_hint);
            assert_eq!(
                observes,
                Some(method.gate() == Gate::Observes),
                "{name} is {method}"
            );
            let acts = hints
                .and_then(|hints| hints.destructive_hint)
                .unwrap_or(false);
            let destroys = method.gate() == Gate::Acts || method == Method::Abort;
            assert_eq!(acts, destroys, "{name} is {method}");
            assert!(
                !method.human_only(),
                "{name} would give an agent what is a person's"
            );
        }
    }
}
