//! Whether the record tells the whole story.

use serde_json::Value;

use crate::failure::Failure;

/// Checks that the events tell, in this order: the agent launched the browser, asked for a person,
/// a person took control, the agent was refused meanwhile, the person returned control (with
/// `note`, if one was given), and the agent acted again under a later epoch.
///
/// # Errors
/// The first part of the story that is missing.
pub fn story(events: &[Value], note: Option<&str>) -> Result<(), Failure> {
    let after = |seq: u64, what: &str, is: &dyn Fn(&Value) -> bool| {
        events
            .iter()
            .find(|event| event["seq"].as_u64().is_some_and(|own| own > seq) && is(event))
            .ok_or_else(|| Failure::new(format!("the record does not tell that {what}")))
    };
    let seq = |event: &Value| event["seq"].as_u64().unwrap_or(u64::MAX);
    let by_agent = |event: &Value, kind: &str| event["kind"] == kind && event["source"] == "agent";
    let done = |event: &Value, kind: &str| by_agent(event, kind) && event["code"].is_null();

    let launch = after(0, "the agent opened the browser", &|e| {
        done(e, "desktop_launch")
    })?;
    let typed = after(seq(launch), "the agent typed", &|e| done(e, "desktop_type"))?;
    let request = after(seq(typed), "it asked for a person", &|e| {
        by_agent(e, "request_human")
    })?;
    let start = after(seq(request), "a person took control", &|e| {
        e["kind"] == "takeover_start" && e["source"] == "human"
    })?;
    let refused = after(seq(start), "the agent was refused in human time", &|e| {
        by_agent(e, "desktop_click") && e["code"] == "human_control_active"
    })?;
    let end = after(seq(refused), "the person returned control", &|e| {
        let noted = note.is_none_or(|note| e["note"] == note);
        e["kind"] == "takeover_return" && e["leaseId"] == start["leaseId"] && noted
    })?;
    let click = after(seq(end), "the agent went on", &|e| done(e, "desktop_click"))?;

    let acted = |e: &Value| seq(e) > seq(start) && seq(e) < seq(end) && done(e, "desktop_click");
    if events.iter().any(acted) {
        return Err(Failure::new(
            "the agent acted while a person was in control",
        ));
    }
    match (start["epoch"].as_u64(), click["epoch"].as_u64()) {
        (Some(human), Some(agent)) if human < agent => Ok(()),
        _ => Err(Failure::new(
            "the epochs do not grow from the takeover to what came after it",
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record() -> Vec<Value> {
        vec![
            json!({"seq": 1, "kind": "desktop_launch", "source": "agent", "epoch": 1}),
            json!({"seq": 2, "kind": "desktop_type", "source": "agent", "epoch": 1}),
            json!({"seq": 3, "kind": "request_human", "source": "agent"}),
            json!({"seq": 4, "kind": "takeover_start", "source": "human", "epoch": 2, "leaseId": "l-1"}),
            json!({"seq": 5, "kind": "desktop_click", "source": "agent", "epoch": 2,
                "code": "human_control_active"}),
            json!({"seq": 6, "kind": "takeover_return", "source": "human", "epoch": 3,
                "leaseId": "l-1", "note": "done"}),
            json!({"seq": 7, "kind": "desktop_click", "source": "agent", "epoch": 3}),
        ]
    }

    #[test]
    fn the_whole_story_is_needed() {
        assert!(story(&record(), Some("done")).is_ok());
        assert!(story(&record(), None).is_ok());
        assert!(story(&record(), Some("another note")).is_err());
        for missing in 0..record().len() {
            let mut events = record();
            events.remove(missing);
            assert!(
                story(&events, Some("done")).is_err(),
                "event {missing} was not missed"
            );
        }
    }

    #[test]
    fn an_action_in_human_time_spoils_it() {
        let mut events = record();
        events[4]["code"] = Value::Null;
        assert!(story(&events, Some("done")).is_err());
    }
}
