//! What agents did and what became of messages to them, in words.

use handover_protocol::Event;
use serde_json::Value;

/// Fields of these events that the sentence, or the words below it, tell already.
pub const TOLD: &[&str] = &[
    "text",
    "status",
    "error",
    "act",
    "agentType",
    "steerId",
    "state",
    "reason",
    "tool",
    "summary",
    "callId",
    "elided",
    "name",
    "task",
    "parent",
];

/// What happened, as one sentence without its end; nothing if it is not about an agent.
pub fn what(event: &Event) -> Option<String> {
    let text = |name: &str| event.fields.get(name).and_then(Value::as_str);
    let word = |name: &str| text(name).unwrap_or("?");
    let because = |name: &str| text(name).map_or_else(String::new, |why| format!(": {why}"));
    let sentence = match event.kind.as_str() {
        "agent_spawned" => {
            let parent = text("parent").map_or_else(String::new, |id| format!(" for {id}"));
            let (name, driver) = (word("name"), word("agentType"));
            format!("new agent {name} ({driver}){parent}{}", because("task"))
        }
        "agent_status" => format!("agent {}{}", word("status"), because("error")),
        "agent_text" => match event.fields.get("elided") {
            Some(bytes) => format!("said, after {bytes} bytes that are only in its output file"),
            None => "said".to_owned(),
        },
        "agent_tool" => {
            let began = if text("state") == Some("end") {
                "ended"
            } else {
                "began"
            };
            format!("tool {} {began}{}", word("tool"), because("summary"))
        }
        "steer" => {
            let (id, state) = (word("steerId"), word("state"));
            format!("message {id} {state}{}", because("reason"))
        }
        "human_intervention" => match word("act") {
            "steer" => format!("message {} to the agent", word("steerId")),
            "abort" => "ended the agent".to_owned(),
            act => act.to_owned(),
        },
        _ => return None,
    };
    Some(sentence)
}

/// What was said in it, to be quoted.
pub fn words(event: &Event) -> Option<&str> {
    let quoted = matches!(
        event.kind.as_str(),
        "agent_text" | "steer" | "human_intervention"
    );
    let words = event.fields.get("text").filter(|_| quoted)?;
    words.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, fields: Value) -> Event {
        let mut event = json!({
            "seq": 1, "at": "2026-01-31T09:30:00.250Z", "kind": kind, "source": "human",
            "actor": {"uid": 0, "pid": 7, "via": "cli"}, "uid": 0, "pid": 7, "agent": "k7m2p4",
        });
        let members = event.as_object_mut().unwrap();
        members.extend(fields.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn sentences() {
        let told = [
            (
                "agent_spawned",
                json!({"agentType": "pi", "name": "docs", "task": "write", "parent": "b2"}),
            ),
            (
                "agent_status",
                json!({"status": "failed", "error": "exit status 3"}),
            ),
            ("agent_text", json!({"text": "hello"})),
            (
                "agent_tool",
                json!({"tool": "bash", "state": "start", "summary": "ls"}),
            ),
            (
                "steer",
                json!({"steerId": "st-1", "state": "dropped", "reason": "aborted"}),
            ),
            (
                "human_intervention",
                json!({"act": "steer", "steerId": "st-1", "text": "no"}),
            ),
            ("human_intervention", json!({"act": "abort"})),
        ]
        .map(|(kind, fields)| what(&event(kind, fields)).unwrap());
        insta::assert_snapshot!(told.join("\n"), @"
        new agent docs (pi) for b2: write
        agent failed: exit status 3
        said
        tool bash began: ls
        message st-1 dropped: aborted
        message st-1 to the agent
        ended the agent
        ");
        assert_eq!(what(&event("paused", json!({}))), None);
        let said = event("agent_text", json!({"text": "hello"}));
        assert_eq!(words(&said), Some("hello"));
        assert_eq!(
            words(&event("request_answered", json!({"text": "x"}))),
            None
        );
    }
}
