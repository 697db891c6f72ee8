//! Finding the session that a command is about.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use handover_host::session::{SessionState, SessionSummary};
use handover_host::system::dirs::Roots;
use handover_protocol::client::ClientError;
use handover_protocol::{ErrorCode, Manifest, SessionId};
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use super::text::plain;

/// How long the kernel may take to end a killed host, whose lock lives as long as its last thread.
pub const LOCK_RELEASED_WITHIN: Duration = Duration::from_secs(3);

/// How often the lock is looked at meanwhile.
pub const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Live hosts of this user, newest first.
pub fn live() -> Vec<Manifest> {
    let found = handover_host::manifest::discover().live;
    found.into_iter().map(|found| found.manifest).collect()
}

/// The socket to connect to.
pub fn socket(context: &Context) -> Result<PathBuf, Failure> {
    match &context.socket {
        Some(path) => Ok(path.clone()),
        None => Ok(PathBuf::from(manifest(context)?.socket_path)),
    }
}

/// Why nothing came of a call on the host behind `socket`, and what to do if it does not answer.
pub fn unanswered(socket: &Path, error: ClientError) -> Failure {
    let is_silent = matches!(error, ClientError::Timeout { .. });
    let failure = Failure::from(error);
    let is_it = |host: &Manifest| Path::new(&host.socket_path) == socket;
    match live().into_iter().find(is_it).filter(|_| is_silent) {
        Some(host) => {
            let (said, pid) = (failure.message(), host.pid);
            let message = format!(
                "{said}: its process {pid} is stopped or overloaded; {}",
                way_on(pid)
            );
            Failure::new(failure.code(), message).with("pid", pid)
        }
        None => failure,
    }
}

/// What to do about a host that does not answer.
pub fn way_on(pid: u32) -> String {
    format!("if it was stopped, `kill -CONT {pid}` lets it go on")
}

/// The live session that the options, the environment and the directory choose.
pub fn manifest(context: &Context) -> Result<Manifest, Failure> {
    let live = live();
    let wanted = context.session.as_deref();
    match pick(&live, wanted, &working_directory()) {
        Err(failure) if failure.code() == ErrorCode::SessionUnknown => {
            Err(explain_stopped(wanted).unwrap_or(failure))
        }
        picked => picked.cloned(),
    }
}

/// Where the command runs, without symbolic links. Where it cannot be told, no project is near.
pub fn working_directory() -> PathBuf {
    std::env::current_dir()
        .and_then(|dir| dir.canonicalize())
        .unwrap_or_default()
}

/// Sessions that left a record, newest first.
pub fn stored() -> Result<Vec<SessionSummary>, Failure> {
    let sessions = handover_host::session::list(&Roots::from_env());
    sessions.map_err(|error| Failure::new(ErrorCode::StorageFailed, error.to_string()))
}

/// The stored session that the options, the environment and the directory choose.
pub fn stored_session(context: &Context) -> Result<SessionSummary, Failure> {
    let mut stored = stored()?;
    let wanted = context.session.as_deref();
    let here = working_directory();
    let index = stored.iter().position(|session| match wanted {
        Some(wanted) => session.is_called(wanted),
        None => {
            let info = session.info.as_ref();
            info.is_ok_and(|info| here.starts_with(&info.project_dir))
        }
    });
    let only = (wanted.is_none() && stored.len() == 1).then_some(0);
    match index.or(only) {
        Some(index) => Ok(stored.swap_remove(index)),
        None => Err(unknown(wanted)),
    }
}

/// The session to bring back that `wanted` names, which must not be running.
pub fn stopped(wanted: &str) -> Result<SessionId, Failure> {
    let asked = Instant::now();
    loop {
        let found = stored()?
            .into_iter()
            .find(|session| session.is_called(wanted));
        let session = found.ok_or_else(|| unknown(Some(wanted)))?;
        let id = session.id;
        if session.state != SessionState::Live {
            return Ok(id);
        }
        // A host that was killed a moment ago may still be on its way out, with the lock in hand.
        if serves(&id) || asked.elapsed() > LOCK_RELEASED_WITHIN {
            let message =
                format!("session {id} is running already; there is nothing to bring back");
            return Err(Failure::new(ErrorCode::AlreadyRunning, message).with("sessionId", id));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Whether a host of this session is there to be connected to.
fn serves(id: &SessionId) -> bool {
    live().iter().any(|manifest| manifest.session_id == *id)
}

/// If the session exists but no host serves it: what to do.
fn explain_stopped(wanted: Option<&str>) -> Option<Failure> {
    let wanted = wanted?;
    let stored = stored().ok()?;
    let session = stored
        .into_iter()
        .find(|session| session.is_called(wanted))?;
    let id = &session.id;
    let how = match session.state {
        SessionState::Live => "does not answer yet",
        SessionState::Ended => "has ended",
        SessionState::Crashed => "lost its host",
        SessionState::Damaged => {
            let problem = session.info.err()?;
            let message = format!("session {id} is not running: {problem}");
            return Some(Failure::new(ErrorCode::SessionUnknown, message));
        }
    };
    let message = format!("session {id} {how}; `handover up --session {id}` brings it back");
    Some(Failure::new(ErrorCode::SessionUnknown, message))
}

fn unknown(wanted: Option<&str>) -> Failure {
    let message = match wanted {
        Some(wanted) => {
            format!(
                "there is no session {}; `handover sessions` lists them",
                plain(wanted)
            )
        }
        None => "no session is running; `handover up` starts one".to_owned(),
    };
    Failure::new(ErrorCode::SessionUnknown, message)
}

/// Chooses among live sessions: the one that is named, else the only one of the nearest project
/// directory, else the only one.
fn pick<'a>(
    live: &'a [Manifest],
    wanted: Option<&str>,
    here: &Path,
) -> Result<&'a Manifest, Failure> {
    let candidates: Vec<&Manifest> = match wanted {
        Some(wanted) => {
            if let Some(session) = live.iter().find(|s| s.session_id.as_str() == wanted) {
                return Ok(session);
            }
            live.iter()
                .filter(|session| session.name == wanted)
                .collect()
        }
        None => {
            let near = |session: &&Manifest| here.starts_with(&session.project_dir);
            let depth = |session: &&Manifest| Path::new(&session.project_dir).components().count();
            let nearest = live.iter().filter(near).max_by_key(depth);
            match nearest {
                Some(nearest) => live
                    .iter()
                    .filter(|s| s.project_dir == nearest.project_dir)
                    .collect(),
                None => live.iter().collect(),
            }
        }
    };
    match candidates[..] {
        [session] => Ok(session),
        [] => Err(unknown(wanted)),
        _ => Err(ambiguous(&candidates)),
    }
}

fn ambiguous(candidates: &[&Manifest]) -> Failure {
    let mut message = "several sessions fit; choose one with --session:".to_owned();
    for session in candidates {
        let (name, dir) = (plain(&session.name), plain(&session.project_dir));
        message.push_str(&format!("\n  {}  {name}  {dir}", session.session_id));
    }
    let list: Vec<Value> = candidates
        .iter()
        .map(|session| {
            json!({
                "sessionId": session.session_id,
                "name": session.name,
                "projectDir": session.project_dir,
            })
        })
        .collect();
    Failure::new(ErrorCode::SessionAmbiguous, message).with("sessions", list)
}

#[cfg(test)]
mod tests {
    use handover_protocol::Timestamp;

    use super::*;

    fn session(id: &str, name: &str, dir: &str) -> Manifest {
        Manifest {
            protocol: 1,
            session_id: id.into(),
            name: name.to_owned(),
            project_dir: dir.to_owned(),
            pid: 1,
            start_ticks: 1,
            boot_id: String::new(),
            socket_path: String::new(),
            herdr_pane_id: None,
            updated_at: Timestamp(0),
            agents: Vec::new(),
            desktops: Vec::new(),
        }
    }

    fn picked(wanted: Option<&str>, here: &str) -> Result<String, ErrorCode> {
        let live = [
            session("s1", "shop", "/projects/shop"),
            session("s2", "cart", "/projects/shop/cart"),
            session("s3", "a", "/projects/twice"),
            session("s4", "b", "/projects/twice"),
            session("s5", "shop", "/other"),
        ];
        let picked = pick(&live, wanted, Path::new(here));
        picked
            .map(|s| s.session_id.to_string())
            .map_err(|failure| failure.code())
    }

    #[test]
    fn by_name() {
        assert_eq!(picked(Some("s2"), "/"), Ok("s2".into()));
        assert_eq!(picked(Some("cart"), "/projects/twice"), Ok("s2".into()));
        assert_eq!(picked(Some("shop"), "/"), Err(ErrorCode::SessionAmbiguous));
        assert_eq!(picked(Some("s"), "/"), Err(ErrorCode::SessionUnknown));
    }

    #[test]
    fn by_directory() {
        assert_eq!(picked(None, "/projects/shop/src"), Ok("s1".into()));
        assert_eq!(picked(None, "/projects/shop/cart/src"), Ok("s2".into()));
        assert_eq!(
            picked(None, "/projects/shopping"),
            Err(ErrorCode::SessionAmbiguous)
        );
        assert_eq!(
            picked(None, "/projects/twice"),
            Err(ErrorCode::SessionAmbiguous)
        );
    }

    #[test]
    fn the_only_one() {
        let live = [session("s1", "shop", "/projects/shop")];
        assert!(pick(&live, None, Path::new("/elsewhere")).is_ok());
        let none = pick(&[], None, Path::new("/")).unwrap_err();
        assert_eq!(none.code(), ErrorCode::SessionUnknown);
    }

    #[test]
    fn the_list_is_shown() {
        let live = [
            session("s3", "a\u{1b}", "/projects/twice"),
            session("s4", "b", "/projects/twice"),
        ];
        let failure = pick(&live, None, Path::new("/projects/twice")).unwrap_err();
        insta::assert_snapshot!(failure.message(), @r"
        several sessions fit; choose one with --session:
          s3  a\u{1b}  /projects/twice
          s4  b  /projects/twice
        ");
        assert_eq!(
            failure.to_json()["error"]["data"]["sessions"][1]["sessionId"],
            "s4"
        );
    }
}
