//! `handover list`: desktops, agents and open requests of a session.

use std::time::SystemTime;

use handover_protocol::{
    AgentStatus, AgentView, Control, DesktopView, ListParams, ListResult, Method, Phase,
    RequestView, Timestamp, Tokens,
};

use super::context::{Context, block_on};
use super::duration;
use super::failure::Failure;
use super::session::Session;
use super::style::Style;
use super::table::{Cell, Table};
use super::text::{plain, shortened};
use crate::lineage;

/// Ended agents that a person is shown, the newest ones.
const ENDED_SHOWN: usize = 20;

/// Arguments of `handover list`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show every ended agent, not only the newest
    #[arg(long)]
    all: bool,
}

/// Runs `handover list`.
pub fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let most = if args.all { usize::MAX } else { ENDED_SHOWN };
    block_on(async {
        let session = Session::open(context).await?;
        let list: ListResult = session.call(Method::List, &ListParams {}).await?;
        context.print(&list, |list| render(list, most, Style::of_stdout(), now()))
    })
}

/// The wall clock; before 1970, which no clock shows, all began just now.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::from_unix(since.unwrap_or_default())
}

fn render(list: &ListResult, most: usize, style: Style, now: Timestamp) -> String {
    let mut text = format!("session {}\n", list.session);
    text.push_str(&desktops(&list.desktops));
    if !list.agents.is_empty() {
        let shown = lineage::newest(&list.agents, most);
        text.push_str(&agents(&shown, style, now));
        let hidden = list.agents.len() - shown.len();
        if hidden > 0 {
            text.push_str(&format!(
                "  and {hidden} more that have ended; --all shows them\n"
            ));
        }
    }
    if !list.requests.is_empty() {
        text.push_str(&requests(&list.requests));
    }
    text
}

/// The lines for desktops; also those of `up`.
pub fn desktops(desktops: &[DesktopView]) -> String {
    if desktops.is_empty() {
        return "  no desktops; `handover desktop new` makes one\n".to_owned();
    }
    let mut table = Table::new(["DESKTOP", "SIZE", "CONTROL", "EPOCH", "HOLDER"]);
    for desktop in desktops {
        let holder = desktop.lease.as_ref().map_or_else(String::new, |lease| {
            format!(
                "{}, {} left",
                plain(&lease.holder),
                duration::show(lease.expires_in_ms)
            )
        });
        table.row([
            plain(desktop.id.as_str()),
            desktop.size.to_string(),
            control(desktop.control, desktop.phase).to_owned(),
            desktop.epoch.to_string(),
            holder,
        ]);
    }
    table.render("  ")
}

/// Control and phase in a word or two.
pub fn control(control: Control, phase: Phase) -> &'static str {
    match (control, phase) {
        (_, Phase::Draining) => "agent (draining)",
        // The display does not answer: nobody may act until it does.
        (Control::Paused, Phase::Returning) => "paused (returning)",
        (_, Phase::Returning) => "human (returning)",
        (Control::Agent, Phase::Steady) => "agent",
        (Control::Human, Phase::Steady) => "human",
        (Control::Paused, Phase::Steady) => "paused",
    }
}

/// The tree of agents, a line each.
pub fn agents(agents: &[AgentView], style: Style, now: Timestamp) -> String {
    let noted = agents.iter().any(|agent| note(agent).is_some());
    let counted = agents.iter().any(|agent| agent.tokens.is_some());
    let mut headings = vec!["AGENT", "NAME", "TYPE", "STATUS", "AGE", "PENDING"];
    headings.extend(counted.then_some("TOKENS"));
    headings.push("TASK");
    headings.extend(noted.then_some("NOTE"));
    let mut table = Table::plain();
    table.cells(
        headings
            .into_iter()
            .map(|text| text.to_owned().into())
            .collect(),
    );
    for branch in lineage::tree(agents) {
        let agent = branch.agent;
        let age = agent.started_at.map_or_else(
            || "-".to_owned(),
            |started| duration::age(now.unix_ms().saturating_sub(started.unix_ms())),
        );
        let pending = (agent.pending > 0).then(|| style.alert()).flatten();
        let id = format!("{}{}", branch.lines, plain(agent.id.as_str()));
        let mut cells = vec![
            id.into(),
            shortened(&agent.name, 24).into(),
            shortened(&agent.kind, 16).into(),
            Cell::painted(status(agent.status), style.status(agent.status)),
            age.into(),
            Cell::painted(agent.pending.to_string(), pending),
        ];
        if counted {
            let tokens = agent.tokens.map_or_else(String::new, tokens);
            cells.push(tokens.into());
        }
        cells.push(shortened(&agent.task, 60).into());
        if noted {
            let note = note(agent).unwrap_or_default();
            cells.push(Cell::painted(note, style.dim()));
        }
        table.cells(cells);
    }
    table.render("  ")
}

/// What an agent's model took in and gave out, such as `12.3k/980`.
pub fn tokens(tokens: Tokens) -> String {
    format!("{}/{}", thousands(tokens.input), thousands(tokens.output))
}

/// A count in at most six characters, up to a thousand billions.
fn thousands(count: u64) -> String {
    let in_units = |unit: u64, name: &str| {
        let tenths = count / (unit / 10);
        match tenths {
            0..1000 => format!("{}.{}{name}", tenths / 10, tenths % 10),
            _ => format!("{}{name}", tenths / 10),
        }
    };
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => in_units(1000, "k"),
        1_000_000..1_000_000_000 => in_units(1_000_000, "M"),
        _ => in_units(1_000_000_000, "G"),
    }
}

/// What else a person should know of an agent that has not ended.
fn note(agent: &AgentView) -> Option<String> {
    let reason = agent.not_steerable.as_ref()?;
    (!agent.status.has_ended()).then(|| format!("not steerable: {}", shortened(reason, 80)))
}

/// The word for a status, as on the wire.
pub fn status(status: AgentStatus) -> &'static str {
    match status {
        AgentStatus::Queued => "queued",
        AgentStatus::Starting => "starting",
        AgentStatus::Running => "running",
        AgentStatus::Waiting => "waiting",
        AgentStatus::Done => "done",
        AgentStatus::Failed => "failed",
        AgentStatus::Aborted => "aborted",
        AgentStatus::CancelledBeforeStart => "cancelled-before-start",
        AgentStatus::Interrupted => "interrupted",
    }
}

fn requests(requests: &[RequestView]) -> String {
    let mut text = String::new();
    for request in requests {
        let id = &request.request_id;
        let named = |word: &str, name: Option<&str>| {
            name.map_or_else(String::new, |name| format!(" {word} {}", plain(name)))
        };
        let agent = named("of agent", request.agent.as_ref().map(AsRef::as_ref));
        let desktop = named("on", request.desktop.as_ref().map(AsRef::as_ref));
        let line = format!(
            "  request {id}{agent}{desktop}: {}\n",
            shortened(&request.reason, 200)
        );
        text.push_str(&line);
        if let Some(question) = &request.question {
            let line = format!(
                "    question: {}\n    answer it with: handover answer {id} TEXT\n",
                shortened(question, 200)
            );
            text.push_str(&line);
        } else if let Some(desktop) = &request.desktop {
            text.push_str(&format!(
                "    take over with: handover watch {desktop} --control\n"
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::lineage::tests::agent;

    /// 2026-01-31T09:40:00Z.
    const NOW: Timestamp = Timestamp(1_769_852_400_000);

    #[test]
    fn control_that_cannot_be_shown_to_have_ended_is_nobodys() {
        let word = |control, phase| super::control(control, phase);
        assert_eq!(word(Control::Human, Phase::Returning), "human (returning)");
        assert_eq!(
            word(Control::Paused, Phase::Returning),
            "paused (returning)"
        );
        assert_eq!(word(Control::Agent, Phase::Draining), "agent (draining)");
    }

    #[test]
    fn as_a_person_sees_it() {
        let list: ListResult = serde_json::from_value(json!({
            "session": "k3j2h1x9",
            "desktops": [
                {"id": "d1", "size": "1280x800", "control": "human", "phase": "steady", "epoch": 3,
                 "lease": {"leaseId": "l-1", "holder": "ada (pid 7)",
                           "since": "2026-01-31T09:30:00.250Z", "expiresInMs": 27_500,
                           "viewer": null}},
                {"id": "d2", "size": "640x480", "control": "agent", "phase": "draining", "epoch": 1}
            ],
            "agents": [
                {"id": "a1", "name": "a1", "type": "command", "status": "running", "parent": null,
                 "depth": 0, "task": "buy\nmilk", "startedAt": "2026-01-31T09:30:00.000Z",
                 "outputFile": null, "pending": 0, "notSteerable": "it takes no messages"},
                {"id": "b7", "name": "漢字\u{1b}[2J", "type": "codex", "status": "waiting",
                 "parent": null, "depth": 0, "task": "y", "startedAt": "2026-01-31T09:39:59.000Z",
                 "outputFile": null, "pending": 1},
                {"id": "a3", "name": "docs", "type": "pi", "status": "running",
                 "parent": "a1", "depth": 1, "task": "z", "startedAt": "2026-01-29T09:30:00.000Z",
                 "outputFile": null, "pending": 0},
                {"id": "a2", "name": "a2", "type": "pi", "status": "cancelled-before-start",
                 "parent": "a1", "depth": 1, "task": "x", "startedAt": null, "outputFile": null,
                 "pending": 2}
            ],
            "requests": [
                {"requestId": "r1", "desktop": "d1", "reason": "log in \u{1b}[31m", "state": "open",
                 "since": "2026-01-31T09:30:00.250Z"},
                {"requestId": "r2", "reason": "which", "question": "red or blue?", "state": "open",
                 "since": "2026-01-31T09:30:00.250Z"}
            ]
        }))
        .unwrap();
        insta::assert_snapshot!(render(&list, 20, Style::default(), NOW), @r"
        session k3j2h1x9
          DESKTOP  SIZE      CONTROL           EPOCH  HOLDER
          d1       1280x800  human             3      ada (pid 7), 27 s left
          d2       640x480   agent (draining)  1
          AGENT  NAME           TYPE     STATUS                  AGE  PENDING  TASK       NOTE
          a1     a1             command  running                 10m  0        buy\nmilk  not steerable: it takes no messages
          ├─ a3  docs           pi       running                 2d   0        z
          └─ a2  a2             pi       cancelled-before-start  -    2        x
          b7     漢字\u{1b}[2J  codex    waiting                 1s   1        y
          request r1 on d1: log in \u{1b}[31m
            take over with: handover watch d1 --control
          request r2: which
            question: red or blue?
            answer it with: handover answer r2 TEXT
        ");
    }

    #[test]
    fn tokens_where_a_program_counts_them() {
        let counts = [
            0,
            999,
            1000,
            12_345,
            123_456,
            999_999,
            1_000_000,
            2_500_000_000,
        ];
        assert_eq!(
            counts.map(thousands),
            ["0", "999", "1.0k", "12.3k", "123k", "999k", "1.0M", "2.5G"]
        );
        let mut agents = [agent("a1", None), agent("a2", None)];
        agents[0].tokens = Some(Tokens {
            input: 12_345,
            output: 980,
        });
        insta::assert_snapshot!(super::agents(&agents, Style::default(), NOW), @"
          AGENT  NAME  TYPE     STATUS   AGE  PENDING  TOKENS     TASK
          a1     a1    command  running  -    0        12.3k/980  t
          a2     a2    command  running  -    0                   t
        ");
    }

    #[test]
    fn nothing_there() {
        let list: ListResult =
            serde_json::from_value(json!({"session": "s", "desktops": [], "agents": []})).unwrap();
        insta::assert_snapshot!(render(&list, 20, Style::default(), NOW), @"
        session s
          no desktops; `handover desktop new` makes one
        ");
    }
}
