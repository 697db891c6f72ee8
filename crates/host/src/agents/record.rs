//! The manager's changes as the store takes them.

use handover_agents::environment::{Change, Entry, NotRecorded};
use handover_protocol::Source;
use handover_store::{NewEvent, Put, StoreError};

/// The events and the changed state of a change.
pub(super) fn parts(change: Change) -> (Vec<NewEvent>, Vec<Put>) {
    let events = change.entries.into_iter().map(event).collect();
    let puts = change
        .state
        .into_iter()
        .map(|(key, value)| Put { key, value })
        .collect();
    (events, puts)
}

fn event(entry: Entry) -> NewEvent {
    let (source, actor) = match entry.by {
        Some(by) => (by.source, Some(by.actor)),
        None => (Source::Host, None),
    };
    let mut event = NewEvent::new(entry.kind, source).agent(entry.agent.0);
    event.actor = actor;
    event.fields = entry.fields;
    event
}

pub(super) fn refused(error: &StoreError) -> NotRecorded {
    NotRecorded(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use handover_agents::environment::By;
    use handover_protocol::Actor;
    use serde_json::json;

    #[test]
    fn who_and_what_survive() {
        let by = By {
            actor: Actor {
                uid: 1,
                pid: 2,
                agent: None,
                via: "cli".into(),
                evidence: Some("tty".into()),
            },
            source: Source::Human,
        };
        let entry = |by| Entry {
            kind: "steer",
            by,
            agent: "abc234".into(),
            fields: json!({"state": "accepted"}).as_object().unwrap().clone(),
        };
        let (events, puts) = parts(Change {
            entries: vec![entry(Some(by.clone())), entry(None)],
            state: vec![("steer/x".into(), Some(json!(1))), ("steer/y".into(), None)],
        });
        assert_eq!(
            (events[0].source, events[0].actor.clone()),
            (Source::Human, Some(by.actor))
        );
        assert_eq!(events[0].agent.as_deref(), Some("abc234"));
        assert_eq!(events[0].fields["state"], "accepted");
        assert_eq!(
            (events[1].source, events[1].actor.clone()),
            (Source::Host, None)
        );
        assert_eq!(puts, [Put::set("steer/x", 1), Put::delete("steer/y")]);
    }
}
