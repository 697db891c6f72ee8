//! `handover steer ID TEXT`.

use clap::ValueEnum;
use handover_protocol::{AgentId, Hidden, Method, SteerParams, SteerResult, SteerState, SteerWhen};

use super::agent;
use super::context::{Context, block_on};
use super::failure::Failure;
use super::text::plain;

/// Arguments of `handover steer`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent
    id: AgentId,
    /// The message
    text: String,
    /// When it is put to the agent
    #[arg(long, value_enum)]
    when: Option<When>,
    /// Wait until this is known about it
    #[arg(long, value_enum, value_name = "STATE")]
    wait: Option<State>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum When {
    Now,
    #[value(name = "next_step", alias = "next-step")]
    NextStep,
    #[value(name = "turn_end", alias = "turn-end")]
    TurnEnd,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum State {
    Accepted,
    Handed,
    Queued,
    Inserted,
    Sent,
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

/// Runs `handover steer`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let params = SteerParams {
        id: args.id,
        text: Hidden::new(args.text),
        steer_id: None,
        when: args.when.map(Into::into),
        wait: args.wait.map(Into::into),
        timeout_ms: None,
    };
    block_on(async {
        let (_, result): (_, SteerResult) = agent::on_its_host(context, async |session| {
            if params.wait.is_some() {
                session.wait_for(Method::Steer, &params).await
            } else {
                session.call(Method::Steer, &params).await
            }
        })
        .await?;
        context.print(&result, |result| {
            let state = serde_json::to_value(result.state).unwrap_or_default();
            format!(
                "{}: {}\n",
                plain(result.steer_id.as_str()),
                state.as_str().unwrap_or_default()
            )
        })
    })
}
