//! What a person does to a session, carried out.

use std::time::Duration;

use handover_protocol::client::{Client, ClientError};
use handover_protocol::{
    AbortParams, AbortResult, AgentId, AnswerParams, AnswerResult, ControlChangeParams,
    ControlReturnParams, ControlReturnResult, ControlStatusResult, DesktopId, Hidden, Method,
    Refusal, RequestId, SessionId, SteerId, SteerParams, SteerResult, SteerWhen,
    StopAllInputParams, StopAllInputResult,
};

use crate::cli::{duration, list};
use crate::overview::clean;

/// How long may take what ends processes, or waits for a person at the terminal.
const PATIENCE: Duration = Duration::from_secs(75);

/// Something to be done in a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    /// Where.
    pub session: SessionId,
    /// What.
    pub deed: Deed,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// Sends a message into an agent.
    Steer {
        /// The agent.
        agent: AgentId,
        /// The message's own number: one that is sent again is not said twice.
        id: SteerId,
        /// What it is told.
        text: String,
        /// When; as its program takes it if none.
        when: Option<SteerWhen>,
    },
    /// Ends an agent and those it started.
    Abort(AgentId),
    /// Answers a request for a person.
    Answer(RequestId, String),
    /// Gives control of a desktop back.
    Return {
        /// The desktop.
        desktop: DesktopId,
        /// What the agents should know.
        note: Option<String>,
    },
    /// Lets nobody act on a desktop.
    Pause(DesktopId),
    /// Ends a pause.
    Resume(DesktopId),
    /// Pauses every desktop and ends every agent.
    StopAll,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Done {
    /// The message has this number, and its receipt follows.
    Steered(SteerId),
    /// It is done, in words that are harmless.
    Said(String),
}

impl Deed {
    /// What is under way, in words.
    pub fn under_way(&self) -> String {
        match self {
            Self::Steer { agent, .. } => format!("sending a message to {}", clean(agent.as_str())),
            Self::Abort(agent) => format!("ending {}", clean(agent.as_str())),
            Self::Answer(request, _) => format!("answering {}", clean(request.as_str())),
            Self::Return { desktop, .. } => format!("returning {}", clean(desktop.as_str())),
            Self::Pause(desktop) => format!("pausing {}", clean(desktop.as_str())),
            Self::Resume(desktop) => format!("resuming {}", clean(desktop.as_str())),
            Self::StopAll => "stopping everything".to_owned(),
        }
    }
}

/// Does it, on the connection to the session's host.
///
/// # Errors
/// Why not, in words that are harmless.
pub async fn carry_out(client: &Client, deed: Deed) -> Result<Done, String> {
    let done = attempt(client, deed).await;
    done.map_err(|error| {
        let refusal = Refusal::from(error);
        format!("{} [{}]", clean(&refusal.message), refusal.code)
    })
}

async fn attempt(client: &Client, deed: Deed) -> Result<Done, ClientError> {
    let said = match deed {
        Deed::Steer {
            agent,
            id,
            text,
            when,
        } => {
            let params = SteerParams {
                id: agent,
                text: Hidden::new(text),
                steer_id: Some(id),
                when,
                wait: None,
                timeout_ms: None,
            };
            let result: SteerResult = client.call(Method::Steer, &params, Some(PATIENCE)).await?;
            return Ok(Done::Steered(result.steer_id));
        }
        Deed::Abort(id) => {
            let params = AbortParams { id };
            let result: AbortResult = client.call(Method::Abort, &params, Some(PATIENCE)).await?;
            aborted(&result)
        }
        Deed::Answer(request_id, text) => {
            let params = AnswerParams {
                request_id,
                text: Hidden::new(text),
            };
            let result: AnswerResult = client.call(Method::Answer, &params, Some(PATIENCE)).await?;
            format!("{} is answered", clean(result.request_id.as_str()))
        }
        Deed::Return { desktop, note } => {
            let params = ControlReturnParams {
                desktop: Some(desktop.clone()),
                note,
                ..ControlReturnParams::default()
            };
            let result: ControlReturnResult = client
                .call(Method::ControlReturn, &params, Some(PATIENCE))
                .await?;
            let held = duration::show(result.held_ms);
            format!(
                "{} is back with its agents after {held}",
                clean(desktop.as_str())
            )
        }
        Deed::Pause(desktop) => change(client, Method::ControlPause, desktop).await?,
        Deed::Resume(desktop) => change(client, Method::ControlResume, desktop).await?,
        Deed::StopAll => {
            let params = StopAllInputParams {};
            let result: StopAllInputResult = client
                .call(Method::StopAllInput, &params, Some(PATIENCE))
                .await?;
            format!(
                "paused {} desktops, ended {} agents",
                result.desktops.len(),
                result.agents.len()
            )
        }
    };
    Ok(Done::Said(said))
}

async fn change(
    client: &Client,
    method: Method,
    desktop: DesktopId,
) -> Result<String, ClientError> {
    let params = ControlChangeParams {
        desktop: Some(desktop),
        force: None,
    };
    let status: ControlStatusResult = client.call(method, &params, Some(PATIENCE)).await?;
    let control = list::control(status.control, status.phase);
    Ok(format!("{}: {control}", clean(status.desktop.as_str())))
}

fn aborted(result: &AbortResult) -> String {
    let mut text = format!(
        "{}: {}",
        clean(result.id.as_str()),
        list::status(result.status)
    );
    if !result.descendants.is_empty() {
        text.push_str(&format!(", with {} below it", result.descendants.len()));
    }
    for pid in &result.survivors {
        text.push_str(&format!("; process {pid} could not be ended"));
    }
    text
}
