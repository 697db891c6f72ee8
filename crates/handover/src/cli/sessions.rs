//! `handover sessions`: the sessions of this user.

use handover_host::session::{SessionInfo, SessionState, SessionSummary};
use handover_protocol::Manifest;
use serde::Serialize;

use super::context::Context;
use super::discover;
use super::failure::Failure;
use super::table::Table;
use super::text::plain;

/// Arguments of `handover sessions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Those without a host too: they have ended, lost it, or are damaged
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Serialize)]
struct Sessions {
    sessions: Vec<Entry>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    session_id: String,
    /// Unknown of a session whose file is damaged, as is its directory.
    name: Option<String>,
    state: &'static str,
    project_dir: Option<String>,
    pid: Option<u32>,
    socket_path: Option<String>,
    desktops: usize,
    /// Those that have not ended.
    agents: usize,
    /// Why its file cannot be read, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl From<Manifest> for Entry {
    fn from(manifest: Manifest) -> Self {
        Self {
            session_id: manifest.session_id.0,
            name: Some(manifest.name),
            state: "live",
            project_dir: Some(manifest.project_dir),
            pid: Some(manifest.pid),
            socket_path: Some(manifest.socket_path),
            desktops: manifest.desktops.len(),
            agents: manifest
                .agents
                .iter()
                .filter(|agent| !agent.status.has_ended())
                .count(),
            problem: None,
        }
    }
}

impl From<SessionSummary> for Entry {
    fn from(session: SessionSummary) -> Self {
        let (name, project_dir, problem) = match session.info {
            Ok(SessionInfo {
                name, project_dir, ..
            }) => (Some(name), Some(project_dir), None),
            Err(error) => (None, None, Some(error.to_string())),
        };
        Self {
            session_id: session.id.0,
            name,
            state: match session.state {
                // Its lock is held but it is not to be found: it is coming or going.
                SessionState::Live => "starting",
                SessionState::Ended => "ended",
                SessionState::Crashed => "crashed",
                SessionState::Damaged => "damaged",
            },
            project_dir,
            pid: None,
            socket_path: None,
            desktops: 0,
            agents: 0,
            problem,
        }
    }
}

/// Runs `handover sessions`.
pub fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let mut sessions: Vec<Entry> = discover::live().into_iter().map(Entry::from).collect();
    if args.all {
        for stored in discover::stored()? {
            if sessions
                .iter()
                .all(|live| live.session_id != stored.id.as_str())
            {
                sessions.push(stored.into());
            }
        }
    }
    context.print(&Sessions { sessions }, render)
}

fn render(list: &Sessions) -> String {
    if list.sessions.is_empty() {
        return "no session is running; `handover up` starts one\n".to_owned();
    }
    let mut table = Table::new([
        "SESSION", "NAME", "STATE", "PID", "DESKTOPS", "AGENTS", "PROJECT",
    ]);
    for session in &list.sessions {
        table.row([
            plain(&session.session_id),
            or_dash(session.name.as_deref()),
            session.state.to_owned(),
            session
                .pid
                .map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
            session.desktops.to_string(),
            session.agents.to_string(),
            or_dash(session.project_dir.as_deref()),
        ]);
    }
    let mut text = table.render("");
    for problem in list.sessions.iter().filter_map(|s| s.problem.as_deref()) {
        text.push_str(&format!("{}\n", plain(problem)));
    }
    text
}

fn or_dash(text: Option<&str>) -> String {
    text.map_or_else(|| "-".to_owned(), plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_a_person_sees_it() {
        let entry = |id: &str, state, pid| Entry {
            session_id: id.to_owned(),
            name: Some("shop".to_owned()),
            state,
            project_dir: Some("/work/shop".to_owned()),
            pid,
            socket_path: None,
            desktops: 2,
            agents: 1,
            problem: None,
        };
        let sessions = vec![
            entry("k3j2h1x9", "live", Some(4711)),
            entry("aaaa1111", "ended", None),
            Entry {
                name: None,
                project_dir: None,
                desktops: 0,
                problem: Some("/s/b/session.json cannot be read (it is missing)".to_owned()),
                ..entry("b", "damaged", None)
            },
        ];
        insta::assert_snapshot!(render(&Sessions { sessions }), @"
        SESSION   NAME  STATE    PID   DESKTOPS  AGENTS  PROJECT
        k3j2h1x9  shop  live     4711  2         1       /work/shop
        aaaa1111  shop  ended    -     2         1       /work/shop
        b         -     damaged  -     0         1       -
        /s/b/session.json cannot be read (it is missing)
        ");
        insta::assert_snapshot!(render(&Sessions { sessions: Vec::new() }), @"no session is running; `handover up` starts one");
    }
}
