//! The requests of Claude Code: permissions go to people, the rest is answered at once.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::wire;
use crate::driver::json::text;
use crate::driver::shorten::{shorten, summary};
use crate::driver::{Effect, MAX_SUMMARY};

/// The most questions open at once; further ones are declined.
const MAX_OPEN: usize = 64;

const NOBODY: &str =
    "Nobody can answer here. Ask with the tool request_human if a person is needed.";
const REFUSED: &str = "A person has refused this.";

/// The questions that people have not decided on, with the input of the tool that each is about.
#[derive(Debug, Default)]
pub(super) struct Asks {
    open: BTreeMap<String, Value>,
}

impl Asks {
    /// The program asks.
    pub(super) fn asked(&mut self, id: &str, request: &Value, out: &mut Vec<Effect>) {
        let tool = text(request, "/tool_name").unwrap_or("a tool");
        let answer = match text(request, "/subtype").unwrap_or_default() {
            // It has several answers, none of which is yes.
            "can_use_tool" if tool == "AskUserQuestion" => wire::answer(id, deny(NOBODY)),
            "can_use_tool" if self.open.len() >= MAX_OPEN => wire::answer(id, deny(REFUSED)),
            "can_use_tool" => {
                let input = request.get("input").cloned().unwrap_or_else(|| json!({}));
                let what = what(tool, request, &input);
                if self.open.insert(id.to_owned(), input).is_none() {
                    let question = id.to_owned();
                    out.push(Effect::Ask { question, what });
                }
                return;
            }
            "elicitation" => wire::answer(id, json!({"action": "decline"})),
            _ => wire::refuse(id, "not supported by this client"),
        };
        out.push(Effect::Write(answer));
    }

    /// A person has decided.
    pub(super) fn decide(&mut self, question: &str, allow: bool, out: &mut Vec<Effect>) {
        let Some(input) = self.open.remove(question) else {
            return;
        };
        let response = if allow {
            json!({"behavior": "allow", "updatedInput": input})
        } else {
            deny(REFUSED)
        };
        out.push(Effect::Write(wire::answer(question, response)));
    }

    /// The program no longer asks.
    pub(super) fn withdrawn(&mut self, id: &str, out: &mut Vec<Effect>) {
        if self.open.remove(id).is_some() {
            let question = id.to_owned();
            out.push(Effect::AskWithdrawn { question });
        }
    }
}

fn deny(message: &str) -> Value {
    json!({"behavior": "deny", "message": message})
}

fn what(tool: &str, request: &Value, input: &Value) -> String {
    let mut what = format!("use {tool}");
    if let Some(summary) = summary(input) {
        what.push_str(&format!(": {summary}"));
    }
    if let Some(reason) = text(request, "/decision_reason").filter(|reason| !reason.is_empty()) {
        what.push_str(&format!(" ({})", shorten(reason, MAX_SUMMARY)));
    }
    what
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(asks: &mut Asks, id: &str, request: Value) -> Vec<Effect> {
        let mut out = Vec::new();
        asks.asked(id, &request, &mut out);
        out
    }

    fn response(out: &[Effect]) -> Value {
        let [Effect::Write(bytes)] = out else {
            panic!("one answer: {out:?}");
        };
        let answer: Value = serde_json::from_slice(bytes).expect("JSON");
        answer["response"].clone()
    }

    #[test]
    fn a_tool_waits_for_a_person() {
        let request = json!({
            "subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "rm -r x"},
        });
        let mut asks = Asks::default();
        assert_eq!(
            asked(&mut asks, "q", request.clone()),
            [Effect::Ask {
                question: "q".to_owned(),
                what: "use Bash: rm -r x".to_owned()
            }]
        );
        let mut out = Vec::new();
        asks.decide("q", true, &mut out);
        asks.decide("q", false, &mut out);
        let allowed = json!({"behavior": "allow", "updatedInput": {"command": "rm -r x"}});
        assert_eq!(response(&out)["response"], allowed);

        asked(&mut asks, "q2", request);
        let mut out = Vec::new();
        asks.decide("q2", false, &mut out);
        assert_eq!(response(&out)["response"]["behavior"], "deny");
    }

    #[test]
    fn what_is_no_permission_is_answered_at_once() {
        let mut asks = Asks::default();
        let question = json!({"subtype": "can_use_tool", "tool_name": "AskUserQuestion"});
        let out = asked(&mut asks, "a", question);
        assert_eq!(response(&out)["response"]["behavior"], "deny");
        let out = asked(&mut asks, "b", json!({"subtype": "elicitation"}));
        assert_eq!(response(&out)["response"]["action"], "decline");
        let out = asked(&mut asks, "c", json!({"subtype": "hook_callback"}));
        assert_eq!(response(&out)["subtype"], "error");
        assert_eq!(response(&out)["request_id"], "c");
    }

    #[test]
    fn a_question_that_is_withdrawn_needs_no_answer() {
        let mut asks = Asks::default();
        let request = json!({"subtype": "can_use_tool", "tool_name": "Bash"});
        asked(&mut asks, "q", request);
        let mut out = Vec::new();
        asks.withdrawn("q", &mut out);
        asks.withdrawn("q", &mut out);
        asks.decide("q", true, &mut out);
        let question = "q".to_owned();
        assert_eq!(out, [Effect::AskWithdrawn { question }]);
    }

    #[test]
    fn a_program_that_asks_without_end_is_declined() {
        let mut asks = Asks::default();
        for number in 0..=MAX_OPEN {
            let request = json!({"subtype": "can_use_tool", "tool_name": "Bash"});
            let out = asked(&mut asks, &number.to_string(), request);
            let declined = matches!(&out[..], [Effect::Write(_)]);
            assert_eq!(declined, number == MAX_OPEN);
        }
    }
}
