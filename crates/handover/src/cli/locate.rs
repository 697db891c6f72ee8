//! Finding an agent: commands that name one need not name its session, nor its whole id.

use std::path::PathBuf;
use std::time::Duration;

use handover_protocol::client::ClientError;
use handover_protocol::{
    AgentId, AgentView, ErrorCode, ListParams, ListResult, Method, ResultParams, ResultResult,
    SessionId,
};
use serde_json::json;
use tokio::task::JoinSet;

use super::context::Context;
use super::discover;
use super::failure::Failure;
use super::session::Session;
use super::text::plain;

/// Most agents that an error lists.
const MAX_LISTED: usize = 20;

/// An agent, and the connection to the host that knows it.
#[derive(Debug)]
pub struct Found {
    /// The connection.
    pub session: Session,
    /// The whole id.
    pub id: AgentId,
}

/// Reads an agent's id, or the beginning of it, from the command line.
///
/// # Errors
/// If it is empty, which would be the beginning of every id.
pub fn id(text: &str) -> Result<AgentId, String> {
    if text.trim().is_empty() {
        return Err("an agent's id cannot be empty; `handover list` shows them".to_owned());
    }
    Ok(text.into())
}

/// Where an agent may be.
#[derive(Debug)]
struct Place {
    socket: PathBuf,
    /// What the manifest says, which may be a moment old.
    manifest: Vec<AgentId>,
}

/// A host that answered.
struct Answering {
    session: Session,
    agents: Vec<AgentId>,
    /// Those of them whose name is what was written for an id.
    named: Vec<AgentId>,
}

/// Finds the agent that `wanted` names: by its id, or by the beginning of it where that fits one
/// agent only. Every live host of this user is searched, newest first, unless the options choose one;
/// `HANDOVER_SESSION` decides between several that fit.
///
/// # Errors
/// `agent_unknown`; `session_ambiguous` if agents of several sessions fit; `session_unknown` if there
/// is no session.
pub async fn agent(context: &Context, wanted: &AgentId) -> Result<Found, Failure> {
    search(context, wanted).await?
}

/// The same, for those who know where else to look: the inner error says that every live host that
/// was to be asked answered, and that none knows the agent.
///
/// # Errors
/// As [`agent`], where the agent may be known all the same.
pub async fn search(
    context: &Context,
    wanted: &AgentId,
) -> Result<Result<Found, Failure>, Failure> {
    let places = match places(context) {
        Ok(places) => places,
        Err(failure) if failure.code() == ErrorCode::SessionUnknown => return Ok(Err(failure)),
        Err(failure) => return Err(failure),
    };
    let listed = |place: &&Place| place.manifest.contains(wanted);
    if let Some(place) = places.iter().find(listed) {
        match Session::at(&place.socket, context).await {
            Ok(session) => {
                let id = wanted.clone();
                return Ok(Ok(Found { session, id }));
            }
            // It has just ended; a session that came back may know its agents.
            Err(failure) if failure.code() == ErrorCode::SessionUnknown => {}
            Err(failure) => return Err(failure),
        }
    }
    let (mut answering, silent) = ask_all(places, wanted, context).await;
    match choose(&known(&answering), wanted, context.session.as_deref()) {
        Choice::One(index, id) => {
            let session = answering.swap_remove(index).session;
            return Ok(Ok(Found { session, id }));
        }
        Choice::Several(several) => return Err(ambiguous(wanted, &several)),
        Choice::None => {}
    }
    if answering.is_empty() {
        return silent.map_or_else(|| Ok(Err(no_session())), Err);
    }
    let named: Vec<AgentId> = answering
        .iter()
        .flat_map(|host| host.named.clone())
        .collect();
    // A host may know more agents than it lists.
    let params = ResultParams { id: wanted.clone() };
    for Answering { session, .. } in answering {
        let answer: Result<ResultResult, Failure> = session.call(Method::Result, &params).await;
        match answer {
            Ok(result) => {
                let id = result.id;
                return Ok(Ok(Found { session, id }));
            }
            Err(failure) if failure.code() == ErrorCode::AgentUnknown => {}
            Err(failure) => return Err(failure),
        }
    }
    let failure = unknown(wanted, &named, silent.is_some());
    if silent.is_some() {
        return Err(failure);
    }
    Ok(Err(failure))
}

/// The id of the agent of this session that `wanted` names, whole or by its beginning.
///
/// # Errors
/// As [`agent`].
pub async fn in_session(session: &Session, wanted: &AgentId) -> Result<AgentId, Failure> {
    let list: ListResult = session.call(Method::List, &ListParams {}).await?;
    let named = named(&list.agents, wanted);
    let agents = list.agents.into_iter().map(|agent| agent.id).collect();
    match choose(&[(list.session, agents)], wanted, None) {
        Choice::One(_, id) => Ok(id),
        Choice::Several(several) => Err(ambiguous(wanted, &several)),
        Choice::None => Err(unknown(wanted, &named, false)),
    }
}

fn places(context: &Context) -> Result<Vec<Place>, Failure> {
    if let Some(socket) = &context.socket {
        let (socket, manifest) = (socket.clone(), Vec::new());
        return Ok(vec![Place { socket, manifest }]);
    }
    let chosen = match context.explicit_session {
        Some(_) => vec![discover::manifest(context)?],
        None => discover::live(),
    };
    let places = chosen.into_iter().map(|manifest| Place {
        socket: PathBuf::from(manifest.socket_path),
        manifest: manifest.agents.into_iter().map(|agent| agent.id).collect(),
    });
    Ok(places.collect())
}

/// Asks every host at once, so that one that is stopped does not hold up the others. Their order is
/// kept; with them comes why one did not answer.
async fn ask_all(
    places: Vec<Place>,
    wanted: &AgentId,
    context: &Context,
) -> (Vec<Answering>, Option<Failure>) {
    let (timeout, patience) = (context.timeout, context.patience);
    let mut asked = JoinSet::new();
    for (index, place) in places.into_iter().enumerate() {
        let wanted = wanted.clone();
        asked.spawn(async move { (index, ask(place, &wanted, timeout, patience).await) });
    }
    let mut answers = asked.join_all().await;
    answers.sort_by_key(|(index, _)| *index);
    let (mut answering, mut silent) = (Vec::new(), None);
    for (_, answer) in answers {
        match answer {
            Ok(answer) => answering.push(answer),
            Err(error) => silent = Some(error.into()),
        }
    }
    (answering, silent)
}

async fn ask(
    place: Place,
    wanted: &AgentId,
    timeout: Duration,
    patience: Duration,
) -> Result<Answering, ClientError> {
    let session = Session::connect(&place.socket, timeout, patience).await?;
    let list: ListResult = session
        .client
        .call(Method::List, &ListParams {}, Some(timeout))
        .await?;
    let named = named(&list.agents, wanted);
    let agents = list.agents.into_iter().map(|agent| agent.id).collect();
    Ok(Answering {
        session,
        agents,
        named,
    })
}

/// The ids of the agents whose name is what was written for an id.
fn named(agents: &[AgentView], wanted: &AgentId) -> Vec<AgentId> {
    let named = agents
        .iter()
        .filter(|agent| agent.name == wanted.as_str())
        .map(|agent| agent.id.clone());
    named.collect()
}

fn known(answering: &[Answering]) -> Vec<(SessionId, Vec<AgentId>)> {
    let known = answering.iter().map(|host| {
        let session = host.session.hello.session_id.clone();
        (session, host.agents.clone())
    });
    known.collect()
}

/// Which agents fit.
#[derive(Debug, PartialEq)]
pub(super) enum Choice {
    None,
    /// By the index of its session.
    One(usize, AgentId),
    Several(Vec<(SessionId, AgentId)>),
}

/// Chooses among the agents of sessions, newest session first. An id in full wins over beginnings.
pub(super) fn choose(
    sessions: &[(SessionId, Vec<AgentId>)],
    wanted: &AgentId,
    preferred: Option<&str>,
) -> Choice {
    let fitting = |fits: &dyn Fn(&AgentId) -> bool| {
        let all = sessions
            .iter()
            .enumerate()
            .flat_map(|(index, (_, agents))| {
                let fitting = agents.iter().filter(|agent| fits(agent));
                fitting.map(move |agent| (index, agent))
            });
        let all: Vec<(usize, &AgentId)> = all.collect();
        let here = |(index, _): &&(usize, &AgentId)| {
            preferred.is_some_and(|session| sessions[*index].0.as_str() == session)
        };
        let preferred: Vec<_> = all.iter().filter(here).copied().collect();
        if preferred.is_empty() { all } else { preferred }
    };
    if let Some(&(index, id)) = fitting(&|id| id == wanted).first() {
        return Choice::One(index, id.clone());
    }
    match fitting(&|id| id.as_str().starts_with(wanted.as_str()))[..] {
        [] => Choice::None,
        [(index, id)] => Choice::One(index, id.clone()),
        ref several => {
            let several = several.iter();
            let several = several.map(|&(index, id)| (sessions[index].0.clone(), id.clone()));
            Choice::Several(several.collect())
        }
    }
}

pub(super) fn ambiguous(wanted: &AgentId, several: &[(SessionId, AgentId)]) -> Failure {
    let first = several.first().map(|(session, _)| session);
    let across = several.iter().any(|(session, _)| Some(session) != first);
    let (code, remedy) = if across {
        let remedy = "write more of it, or choose the session with --session";
        (ErrorCode::SessionAmbiguous, remedy)
    } else {
        (ErrorCode::AgentUnknown, "write more of it")
    };
    let wanted = plain(wanted.as_str());
    let mut message = format!("several agents begin with {wanted}; {remedy}:");
    for (session, agent) in several.iter().take(MAX_LISTED) {
        let agent = plain(agent.as_str());
        message.push_str(&format!("\n  {agent}  session {session}"));
    }
    if several.len() > MAX_LISTED {
        message.push_str(&format!("\n  and {} more", several.len() - MAX_LISTED));
    }
    let agents = several.iter().take(MAX_LISTED);
    let agents = agents.map(|(session, agent)| json!({ "id": agent, "sessionId": session }));
    Failure::new(code, message).with("agents", agents.collect::<Vec<_>>())
}

/// `named` are agents whose name, though not their id, is `wanted`. They are told and not taken: several may have
/// the same name, and one that is named like a running one may come any time.
fn unknown(wanted: &AgentId, named: &[AgentId], incomplete: bool) -> Failure {
    let id = plain(wanted.as_str());
    let but = if incomplete {
        " (a session did not answer; it may know it)"
    } else {
        ""
    };
    let shown = named.iter().take(MAX_LISTED);
    let shown: Vec<String> = shown.map(|agent| plain(agent.as_str())).collect();
    let remedy = match &shown[..] {
        [] => "`handover list` shows those there are".to_owned(),
        [only] => format!("that is the name of {only}: write its id"),
        several => format!(
            "that is the name of {}: write the id of one",
            several.join(", ")
        ),
    };
    let message = format!("there is no agent with the id {id}{but}; {remedy}");
    let failure = Failure::new(ErrorCode::AgentUnknown, message).with("id", wanted);
    if named.is_empty() {
        return failure;
    }
    failure.with("named", &named[..shown.len()])
}

fn no_session() -> Failure {
    let message = "no session is running, so there are no agents; `handover up` starts one";
    Failure::new(ErrorCode::SessionUnknown, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(all: &[(&str, &[&str])]) -> Vec<(SessionId, Vec<AgentId>)> {
        let ids = |agents: &[&str]| agents.iter().map(|&id| id.into()).collect();
        let sessions = all.iter();
        sessions
            .map(|&(session, agents)| (session.into(), ids(agents)))
            .collect()
    }

    fn chosen(wanted: &str, preferred: Option<&str>) -> Choice {
        let all = sessions(&[
            ("new", &["k7m2p4", "k7x9q2", "dupe"]),
            ("old", &["k7m2", "q5", "dupe", "b3c4d5"]),
        ]);
        choose(&all, &wanted.into(), preferred)
    }

    #[test]
    fn the_whole_id_or_a_beginning_that_fits_one() {
        assert_eq!(chosen("k7x", None), Choice::One(0, "k7x9q2".into()));
        assert_eq!(chosen("b", None), Choice::One(1, "b3c4d5".into()));
        // A whole id is no beginning of another one.
        assert_eq!(chosen("k7m2", None), Choice::One(1, "k7m2".into()));
        // The newest session first.
        assert_eq!(chosen("dupe", None), Choice::One(0, "dupe".into()));
        assert_eq!(chosen("dupe", Some("old")), Choice::One(1, "dupe".into()));
        assert_eq!(chosen("zz", None), Choice::None);
    }

    #[test]
    fn a_name_is_told_from_an_id() {
        let message = |named: &[&str]| {
            let named: Vec<AgentId> = named.iter().map(|&id| id.into()).collect();
            unknown(&"shop\u{1b}".into(), &named, false)
                .message()
                .to_owned()
        };
        insta::assert_snapshot!(message(&[]), @r"there is no agent with the id shop\u{1b}; `handover list` shows those there are");
        insta::assert_snapshot!(message(&["k7m2"]), @r"there is no agent with the id shop\u{1b}; that is the name of k7m2: write its id");
        insta::assert_snapshot!(message(&["k7m2", "q5"]), @r"there is no agent with the id shop\u{1b}; that is the name of k7m2, q5: write the id of one");
        let failure = unknown(&"shop".into(), &["k7m2".into()], false);
        assert_eq!(failure.to_json()["error"]["data"]["named"][0], "k7m2");
    }

    #[test]
    fn several_are_listed() {
        let Choice::Several(several) = chosen("k7", None) else {
            panic!("not several");
        };
        let failure = ambiguous(&"k7".into(), &several);
        assert_eq!(failure.code(), ErrorCode::SessionAmbiguous);
        insta::assert_snapshot!(failure.message(), @"
        several agents begin with k7; write more of it, or choose the session with --session:
          k7m2p4  session new
          k7x9q2  session new
          k7m2  session old
        ");
        // The session of the environment decides where it can.
        assert_eq!(chosen("k7", Some("old")), Choice::One(1, "k7m2".into()));
        assert_eq!(chosen("q", Some("new")), Choice::One(1, "q5".into()));
        let Choice::Several(several) = chosen("k7", Some("new")) else {
            panic!("not several");
        };
        let failure = ambiguous(&"k7".into(), &several);
        assert_eq!(failure.code(), ErrorCode::AgentUnknown);
        assert_eq!(
            failure.to_json()["error"]["data"]["agents"][1]["id"],
            "k7x9q2"
        );
    }
}
