//! `handover steer ID TEXT`.

use std::io::Read;
use std::time::Duration;

use clap::ValueEnum;
use handover_protocol::{
    AgentId, ErrorCode, Hidden, MAX_REQUEST, Method, SteerId, SteerParams, SteerResult, SteerState,
    SteerWhen,
};

use super::context::{Context, block_on};
use super::failure::Failure;
use super::text::plain;
use super::{duration, locate};

/// How much longer than asked for the host may take to say that the time is over: it may have to ask a
/// person at the terminal first.
const GRACE: Duration = Duration::from_secs(60);

/// Arguments of `handover steer`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent, by its id or the beginning of it
    #[arg(value_parser = locate::id)]
    id: AgentId,
    /// The message; `-` reads it from standard input
    text: String,
    /// When it is put to the agent, where its program can
    #[arg(long, value_enum)]
    when: Option<When>,
    /// Wait until this is known about it, at most as long as --timeout says [default: 30s]
    #[arg(long, value_enum, value_name = "STATE")]
    wait: Option<State>,
    /// An id for the message; the same id again is the same message
    #[arg(long, value_name = "ID", value_parser = steer_id)]
    steer_id: Option<SteerId>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum When {
    /// At once, cutting short what the agent does
    Now,
    /// Before its next step, as if not said otherwise
    #[value(name = "next_step", alias = "next-step")]
    NextStep,
    /// At the end of its turn
    #[value(name = "turn_end", alias = "turn-end")]
    TurnEnd,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum State {
    /// Stored by the host
    Accepted,
    /// About to be written to the program
    Handed,
    /// The program has it
    Queued,
    /// It is in the agent's history
    Inserted,
    /// A request to the model held it
    Sent,
    /// The model answered
    Answered,
}

impl From<When> for SteerWhen {
    fn from(when: When) -> Self {
        match when {
            When::Now => Self::Now,
            When::NextStep => Self::NextStep,
            When::TurnEnd => Self::TurnEnd,
        }
    }
}

impl From<State> for SteerState {
    fn from(state: State) -> Self {
        match state {
            State::Accepted => Self::Accepted,
            State::Handed => Self::Handed,
            State::Queued => Self::Queued,
            State::Inserted => Self::Inserted,
            State::Sent => Self::Sent,
            State::Answered => Self::Answered,
        }
    }
}

fn steer_id(text: &str) -> Result<SteerId, String> {
    if text.trim().is_empty() {
        return Err("the id of a message cannot be empty".to_owned());
    }
    Ok(text.into())
}

/// Runs `handover steer`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let text = match args.text.as_str() {
        "-" => from_stdin()?,
        _ => args.text,
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the message is empty"));
    }
    let wanted = args.wait.map(SteerState::from);
    let limit = context.explicit_timeout.filter(|_| wanted.is_some());
    block_on(async {
        let locate::Found { session, id } = locate::agent(context, &args.id).await?;
        let params = SteerParams {
            id,
            text: Hidden::new(text),
            steer_id: args.steer_id,
            when: args.when.map(Into::into),
            wait: wanted,
            timeout_ms: limit.map(duration::ms),
        };
        let result: SteerResult = match (wanted, limit) {
            (None, _) => session.call_patiently(Method::Steer, &params).await?,
            (Some(_), None) => session.wait_for(Method::Steer, &params).await?,
            (Some(_), Some(limit)) => {
                let within = Some(limit.saturating_add(GRACE));
                session.client.call(Method::Steer, &params, within).await?
            }
        };
        match wanted.and_then(|wanted| short_of(&result, wanted)) {
            Some(failure) => Err(failure),
            None => context.print(&result, render),
        }
    })
}

/// Reads a text from standard input, without the newline at its end.
///
/// # Errors
/// If it is no UTF-8, or longer than any request may be.
pub fn from_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let most = MAX_REQUEST as u64;
    std::io::stdin()
        .lock()
        .take(most + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() > MAX_REQUEST {
        let message = format!("standard input holds more than {MAX_REQUEST} bytes; send less");
        return Err(Failure::new(ErrorCode::LineTooLong, message));
    }
    let mut text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage("standard input is no text in UTF-8"))?;
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}

/// Why what was waited for did not come, if it did not.
fn short_of(result: &SteerResult, wanted: SteerState) -> Option<Failure> {
    let reason = result
        .reason
        .as_deref()
        .map_or_else(String::new, |reason| format!(": {}", plain(reason)));
    let id = plain(result.steer_id.as_str());
    let (code, message) = match result.state {
        SteerState::Dropped => {
            let message = format!("the message {id} was dropped{reason}");
            (ErrorCode::AgentNotRunning, message)
        }
        SteerState::Unknown => {
            let message = format!("the message {id} may or may not have arrived{reason}");
            (ErrorCode::AgentNotRunning, message)
        }
        reached if reached < wanted => {
            let (reached, wanted) = (word(reached), word(wanted));
            let message = format!("the message {id} is {reached}, and not yet {wanted}");
            (ErrorCode::Timeout, message)
        }
        _ => return None,
    };
    let beside = serde_json::to_value(result).unwrap_or_default();
    Some(Failure::new(code, message).beside(beside))
}

fn render(result: &SteerResult) -> String {
    let id = plain(result.steer_id.as_str());
    let state = word(result.state);
    match &result.reason {
        Some(reason) => format!("{id}: {state}: {}\n", plain(reason)),
        None => format!("{id}: {state}\n"),
    }
}

/// The word for a state, as on the wire.
pub fn word(state: SteerState) -> &'static str {
    match state {
        SteerState::Accepted => "accepted",
        SteerState::Handed => "handed",
        SteerState::Queued => "queued",
        SteerState::Inserted => "inserted",
        SteerState::Sent => "sent",
        SteerState::Answered => "answered",
        SteerState::Dropped => "dropped",
        SteerState::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(state: SteerState, reason: Option<&str>) -> SteerResult {
        SteerResult {
            steer_id: "st-1".into(),
            state,
            reason: reason.map(str::to_owned),
        }
    }

    #[test]
    fn what_was_waited_for_came_or_not() {
        let code =
            |state, wanted| short_of(&result(state, None), wanted).map(|failure| failure.code());
        use SteerState::{Answered, Dropped, Handed, Sent, Unknown};
        assert_eq!(code(Sent, Sent), None);
        assert_eq!(code(Answered, Sent), None);
        assert_eq!(code(Handed, Sent), Some(ErrorCode::Timeout));
        assert_eq!(code(Dropped, Sent), Some(ErrorCode::AgentNotRunning));
        assert_eq!(code(Unknown, Sent), Some(ErrorCode::AgentNotRunning));
        let dropped = result(Dropped, Some("the agent was aborted"));
        let json = short_of(&dropped, Sent).unwrap().to_json();
        assert_eq!(
            (&json["ok"], &json["state"]),
            (&false.into(), &"dropped".into())
        );
    }

    #[test]
    fn as_a_person_sees_it() {
        assert_eq!(
            render(&result(SteerState::Accepted, None)),
            "st-1: accepted\n"
        );
        let dropped = result(SteerState::Dropped, Some("aborted\u{1b}[2J"));
        assert_eq!(render(&dropped), "st-1: dropped: aborted\\u{1b}[2J\n");
    }
}
