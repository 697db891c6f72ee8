//! What agents of sessions without a host came to, read from the record.

use std::path::Path;
use std::time::Instant;

use handover_agents::ended::{Ended, KEYS};
use handover_host::session::{SessionState, SessionSummary};
use handover_protocol::{AgentId, ErrorCode, ResultResult, SessionId};
use handover_store::{Projections, StoreError};

use super::context::Context;
use super::discover::{self, LOCK_RELEASED_WITHIN, LOOK_AGAIN};
use super::failure::Failure;
use super::locate::{self, Choice};

/// Agents that are read at once.
const PAGE: usize = 500;

/// The agents of one record.
struct Record {
    session: SessionId,
    state: Projections,
    agents: Vec<Ended>,
}

/// What the agent that `wanted` names came to, if it is one of a session that no host serves: of the
/// session that the options choose, else of any, newest first.
///
/// # Errors
/// `session_ambiguous` or `agent_unknown` if several fit; `storage_failed` if the record of the
/// session that was chosen cannot be read.
pub fn result(context: &Context, wanted: &AgentId) -> Result<Option<ResultResult>, Failure> {
    if context.socket.is_some() {
        return Ok(None);
    }
    let asked = Instant::now();
    loop {
        let found = look(context, wanted)?;
        // A host that was killed a moment ago may still be on its way out, with the lock in hand.
        if found.is_some() || asked.elapsed() > LOCK_RELEASED_WITHIN || !any_comes_or_goes(context)?
        {
            return Ok(found);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Whether a session that may be meant has a host that is not to be found.
fn any_comes_or_goes(context: &Context) -> Result<bool, Failure> {
    let live = discover::live();
    let hidden = |session: &SessionSummary| {
        session.state == SessionState::Live
            && is_meant(session, context)
            && live.iter().all(|host| host.session_id != session.id)
    };
    Ok(discover::stored()?.iter().any(hidden))
}

fn is_meant(session: &SessionSummary, context: &Context) -> bool {
    let chosen = context.explicit_session.as_deref();
    chosen.is_none_or(|wanted| session.is_called(wanted))
}

fn look(context: &Context, wanted: &AgentId) -> Result<Option<ResultResult>, Failure> {
    let mut records = records(context)?;
    let known: Vec<_> = records
        .iter()
        .map(|record| {
            let agents = record.agents.iter().map(|agent| agent.id().clone());
            (record.session.clone(), agents.collect())
        })
        .collect();
    let (index, id) = match locate::choose(&known, wanted, context.session.as_deref()) {
        Choice::One(index, id) => (index, id),
        Choice::Several(several) => return Err(locate::ambiguous(wanted, &several)),
        Choice::None => return Ok(None),
    };
    let Record { state, agents, .. } = records.swap_remove(index);
    let Some(agent) = agents.into_iter().find(|agent| *agent.id() == id) else {
        return Ok(None);
    };
    let outcome = state.get(&agent.result_key()).map_err(unreadable)?;
    Ok(Some(agent.result(outcome)))
}

fn records(context: &Context) -> Result<Vec<Record>, Failure> {
    let without_host = |session: &SessionSummary| {
        matches!(session.state, SessionState::Ended | SessionState::Crashed)
            && is_meant(session, context)
    };
    let mut records = Vec::new();
    for session in discover::stored()?.into_iter().filter(without_host) {
        match open(&session.state_dir) {
            Ok((state, agents)) => records.push(Record {
                session: session.id,
                state,
                agents,
            }),
            Err(error) if context.explicit_session.is_some() => return Err(unreadable(error)),
            // One that is damaged does not hide the others.
            Err(error) => tracing::warn!(session = %session.id, %error, "a record is passed over"),
        }
    }
    Ok(records)
}

fn open(dir: &Path) -> Result<(Projections, Vec<Ended>), StoreError> {
    let state = Projections::open_dir(dir)?;
    let (mut agents, mut after) = (Vec::new(), String::new());
    loop {
        let page = state.list_page(KEYS, &after, PAGE)?;
        let Some((last, _)) = page.last() else {
            return Ok((state, agents));
        };
        after.clone_from(last);
        agents.extend(
            page.into_iter()
                .filter_map(|(_, stored)| Ended::read(stored)),
        );
    }
}

fn unreadable(error: StoreError) -> Failure {
    Failure::new(ErrorCode::StorageFailed, error.to_string())
}
