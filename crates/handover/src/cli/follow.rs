//! `handover follow [ID]`: events as they happen.

use std::io::Write;
use std::pin::Pin;
use std::time::Duration;

use handover_protocol::client::{Client, ClientError};
use handover_protocol::{
    AgentId, ErrorCode, Event, Gap, JournalParams, JournalResult, Method, ResultParams,
    ResultResult, SubscribeParams, SubscribeResult,
};
use tokio::signal::unix::{SignalKind, signal};

use super::context::{Context, block_on, print_json};
use super::failure::Failure;
use super::hang_up::HangUp;
use super::locate;
use super::session::Session;
use super::story::{self, Story};
use super::style::Style;

/// How long nothing may be heard of an agent before the host is asked whether it has ended.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// How long what an ended agent left behind may take to arrive.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// Arguments of `handover follow`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only what is about this agent, by its id or the beginning of it; ends when the agent does
    #[arg(value_parser = locate::id)]
    id: Option<AgentId>,
    /// Begin with the event after this number, as to go on where an earlier one stopped
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
    /// Everything of the session, as without an agent
    #[arg(long, conflicts_with = "id")]
    all: bool,
}

/// Runs `handover follow`, until the agent or the host ends or it is interrupted.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let style = Style::of_stdout();
    block_on(async {
        let Some(wanted) = &args.id else {
            let session = Session::open(context).await?;
            let params = SubscribeParams {
                since: args.since,
                ..SubscribeParams::default()
            };
            let story = Story::of_all(style);
            return stream(session, params, context, |event| story.tell(event)).await;
        };
        let locate::Found { session, id } = locate::agent(context, wanted).await?;
        let story = Story::of_one(style);
        let params = ResultParams { id: id.clone() };
        let now: ResultResult = session.call(Method::Result, &params).await?;
        let ended = now.status.has_ended();
        if ended {
            match replay(&session, &id, args.since, context, &story).await {
                // A program that serves its own agents has no record, only what it remembers.
                Err(failure) if failure.code() == ErrorCode::MethodUnknown => {}
                replayed => return replayed,
            }
        }
        let params = SubscribeParams {
            since: args.since.or(ended.then_some(0)),
            agent: Some(id),
            ..SubscribeParams::default()
        };
        stream(session, params, context, |event| story.tell(event)).await
    })
}

/// Prints the events that `params` choose, as they come; if they choose an agent, until it ends.
///
/// # Errors
/// The host's refusal; an interrupt; `session_unknown` when the host ends; a broken pipe as soon as
/// nobody reads.
pub async fn stream(
    mut session: Session,
    params: SubscribeParams,
    context: &Context,
    show: impl Fn(&Event) -> String,
) -> Result<(), Failure> {
    // From here on, so that none is missed between two waits.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = HangUp::watch()?;
    let begun: SubscribeResult = session.call(Method::Subscribe, &params).await?;
    let mut printer = Printer {
        context,
        seen: begun.cursor,
        show,
    };
    let Some(agent) = &params.agent else {
        return loop {
            let news = tokio::select! {
                news = session.notifications.recv() => news,
                _ = interrupt.recv() => break Err(printer.interrupted()),
                gone = hang_up.told() => break Err(gone),
            };
            match news {
                Some(news) => printer.print(&news.method, news.params)?,
                None => break Err(printer.lost()),
            };
        };
    };
    let mut asking = ask(session.client.clone(), agent.clone());
    let mut ended = false;
    loop {
        tokio::select! {
            biased;
            _ = interrupt.recv() => return Err(printer.interrupted()),
            gone = hang_up.told() => return Err(gone),
            news = session.notifications.recv() => {
                let news = news.ok_or_else(|| printer.lost())?;
                let event = printer.print(&news.method, news.params)?;
                if event.is_some_and(|event| story::ends(&event, agent)) {
                    return Ok(());
                }
            }
            // Nothing has come for a while after the end: what tells of it was left out, or is older
            // than the subscription.
            () = tokio::time::sleep(LAST_EVENTS), if ended => return Ok(()),
            answer = &mut asking, if !ended => {
                ended = answer?.status.has_ended();
                asking = ask(session.client.clone(), agent.clone());
            }
        }
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<ResultResult, ClientError>>>>;

/// Asks, in a while, how the agent stands.
fn ask(client: Client, id: AgentId) -> Answer {
    Box::pin(async move {
        tokio::time::sleep(LOOK_AGAIN).await;
        client
            .call(Method::Result, &ResultParams { id }, None)
            .await
    })
}

/// Prints what the record has of an agent that has ended: its end, or all of it after number `since`.
async fn replay(
    session: &Session,
    id: &AgentId,
    since: Option<u64>,
    context: &Context,
    story: &Story,
) -> Result<(), Failure> {
    let kinds = since.is_none().then(|| vec!["agent_status".to_owned()]);
    let (mut from, mut last) = (since.unwrap_or(0), None);
    loop {
        let params = JournalParams {
            since: Some(from),
            limit: None,
            kinds: kinds.clone(),
        };
        let page: JournalResult = session.call(Method::Journal, &params).await?;
        let over = page.events.is_empty() && page.next <= from;
        for event in page.events {
            if event.agent.as_ref() != Some(id) {
                continue;
            }
            if since.is_some() {
                context.print(&event, |event| story.tell(event))?;
            } else {
                last = Some(event);
            }
        }
        if over {
            break;
        }
        from = page.next;
    }
    match last {
        Some(event) => context.print(&event, |event| story.tell(event)),
        None => Ok(()),
    }
}

/// Prints notifications, and knows how far it came.
struct Printer<'a, F> {
    context: &'a Context,
    /// The last number that was printed or passed over.
    seen: u64,
    show: F,
}

impl<F: Fn(&Event) -> String> Printer<'_, F> {
    /// Prints one notification, and gives the event that it was.
    fn print(&mut self, method: &str, params: serde_json::Value) -> Result<Option<Event>, Failure> {
        match method {
            "event" => {
                if self.context.json {
                    print_json(&params)?;
                }
                let Ok(event) = serde_json::from_value::<Event>(params) else {
                    return Ok(None);
                };
                self.seen = event.seq;
                if !self.context.json {
                    self.context.print(&event, &self.show)?;
                }
                Ok(Some(event))
            }
            "gap" => {
                let Ok(gap) = serde_json::from_value::<Gap>(params) else {
                    return Ok(None);
                };
                self.seen = gap.to;
                let json = serde_json::json!({ "kind": "gap", "from": gap.from, "to": gap.to });
                self.context.print(&json, |_| {
                    format!(
                        "… events {} to {} were left out; see `handover log`",
                        gap.from, gap.to
                    )
                })?;
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn interrupted(&self) -> Failure {
        if !self.context.json {
            // If standard error is closed, nobody misses it.
            let _ = writeln!(
                std::io::stderr().lock(),
                "--since {} goes on from here",
                self.seen
            );
        }
        Failure::interrupted()
    }

    fn lost(&self) -> Failure {
        let message = format!(
            "the host has ended, or the connection to it was lost; --since {} goes on from here",
            self.seen
        );
        Failure::new(ErrorCode::SessionUnknown, message).with("since", self.seen)
    }
}
