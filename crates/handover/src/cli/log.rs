//! `handover log`: the record of a session.

use handover_protocol::{Event, Source, SubscribeParams};
use serde_json::Value;

use super::context::{Context, block_on};
use super::failure::Failure;
use super::follow;
use super::record::Record;
use super::text::{plain, shortened};

/// Arguments of `handover log`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only events after this number
    #[arg(
        long,
        value_name = "SEQ",
        default_value_t = 0,
        hide_default_value = true
    )]
    since: u64,
    /// At most so many events, the latest ones
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Only events of this kind; may be given several times
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,
    /// Go on with events as they happen
    #[arg(long)]
    follow: bool,
}

/// Runs `handover log`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    block_on(async {
        let record = Record::find(context).await?;
        let (events, _) = record.all(args.since, &args.kinds).await?;
        let first = args
            .limit
            .map_or(0, |limit| events.len().saturating_sub(limit));
        for event in &events[first..] {
            context.print(event, line)?;
        }
        match record.host {
            Some(host) if args.follow => {
                let kinds = (!args.kinds.is_empty()).then_some(args.kinds);
                let since = Some(events.last().map_or(args.since, |event| event.seq));
                let params = SubscribeParams {
                    since,
                    kinds,
                    agent: None,
                };
                follow::stream(host, params, context, line).await
            }
            _ => Ok(()),
        }
    })
}

/// One event on one line for people.
pub fn line(event: &Event) -> String {
    format!("{:>5} {} {}", event.seq, event.at, told(event))
}

/// The same, without its number and time.
pub fn told(event: &Event) -> String {
    let source = match event.source {
        Source::Human => "human",
        Source::Agent => "agent",
        Source::App => "app",
        Source::Host => "host",
    };
    let mut line = format!("{source:<5} {}", plain(&event.kind));
    if let Some(desktop) = &event.desktop {
        line.push_str(&format!(" {}", plain(desktop.as_str())));
    }
    if let Some(epoch) = event.epoch {
        line.push_str(&format!(" epoch={epoch}"));
    }
    if let Some(agent) = &event.agent {
        line.push_str(&format!(" agent={}", plain(agent.as_str())));
    }
    for (name, value) in &event.fields {
        let value = match value {
            Value::String(text) => shortened(text, 100),
            value => shortened(&value.to_string(), 100),
        };
        line.push_str(&format!(" {}={value}", plain(name)));
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_as_a_person_sees_it() {
        let event: Event = serde_json::from_value(json!({
            "seq": 12, "at": "2026-01-31T09:30:00.250Z", "kind": "desktop_click",
            "source": "agent", "actor": {"uid": 0, "pid": 7, "via": "mcp"}, "uid": 0, "pid": 7,
            "desktop": "d1", "epoch": 2, "outcome": "ok\u{1b}[2J", "x": 5, "y": 6
        }))
        .unwrap();
        insta::assert_snapshot!(line(&event), @r"   12 2026-01-31T09:30:00.250Z agent desktop_click d1 epoch=2 outcome=ok\u{1b}[2J x=5 y=6");
    }
}
