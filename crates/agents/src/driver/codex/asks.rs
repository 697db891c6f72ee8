//! The questions of `codex app-server`: permissions go to people, the rest is answered at once.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::rpc;
use crate::driver::Effect;
use crate::driver::MAX_SUMMARY;
use crate::driver::json::text;
use crate::driver::shorten::shorten;

/// The most questions open at once; further ones are declined.
const MAX_OPEN: usize = 64;

/// The questions that people have not decided on.
#[derive(Debug, Default)]
pub(super) struct Asks {
    open: BTreeMap<String, Ask>,
}

#[derive(Debug)]
struct Ask {
    id: Value,
    thread: String,
    allow: Value,
    deny: Value,
}

impl Asks {
    /// The program asks.
    pub(super) fn asked(&mut self, id: Value, method: &str, params: &Value, out: &mut Vec<Effect>) {
        let Some((what, allow, deny)) = question(method, params) else {
            out.push(Effect::Write(unasked(&id, method, params)));
            return;
        };
        if self.open.len() >= MAX_OPEN {
            out.push(Effect::Write(rpc::answer(&id, deny)));
            return;
        }
        let question = id.to_string();
        let thread = text(params, "/threadId").unwrap_or_default().to_owned();
        let ask = Ask {
            id,
            thread,
            allow,
            deny,
        };
        if self.open.insert(question.clone(), ask).is_none() {
            out.push(Effect::Ask { question, what });
        }
    }

    /// A person has decided.
    pub(super) fn decide(&mut self, question: &str, allow: bool, out: &mut Vec<Effect>) {
        if let Some(ask) = self.open.remove(question) {
            let result = if allow { ask.allow } else { ask.deny };
            out.push(Effect::Write(rpc::answer(&ask.id, result)));
        }
    }

    /// The program says that a question is settled.
    pub(super) fn resolved(&mut self, id: &Value, out: &mut Vec<Effect>) {
        let question = id.to_string();
        if self.open.remove(&question).is_some() {
            out.push(Effect::AskWithdrawn { question });
        }
    }

    /// The turn that asked has ended.
    pub(super) fn withdraw(&mut self, thread: &str, out: &mut Vec<Effect>) {
        self.open.retain(|question, ask| {
            if ask.thread == thread {
                let question = question.clone();
                out.push(Effect::AskWithdrawn { question });
            }
            ask.thread != thread
        });
    }
}

/// What a person is asked, and the answers for yes and no; `None` if it is no question of yes or no.
fn question(method: &str, params: &Value) -> Option<(String, Value, Value)> {
    let decisions = || {
        (
            json!({"decision": "accept"}),
            json!({"decision": "decline"}),
        )
    };
    let mut what = match method {
        "item/commandExecution/requestApproval" => match text(params, "/command") {
            Some(command) => format!("run {}", short(command)),
            None => "use the network".to_owned(),
        },
        "item/fileChange/requestApproval" => match text(params, "/grantRoot") {
            Some(root) => format!("change files below {root}"),
            None => "change files".to_owned(),
        },
        "item/permissions/requestApproval" => {
            let wanted = params.get("permissions").unwrap_or(&Value::Null);
            format!("have further permissions: {}", short(&wanted.to_string()))
        }
        "mcpServer/elicitation/request" if is_yes_or_no(params) => {
            let server = text(params, "/serverName").unwrap_or("an MCP server");
            let message = text(params, "/message").unwrap_or_default();
            format!("go on; {server} asks: {}", short(message))
        }
        _ => return None,
    };
    if let Some(reason) = text(params, "/reason").filter(|reason| !reason.is_empty()) {
        what.push_str(&format!(" ({})", short(reason)));
    }
    let (allow, deny) = match method {
        "item/permissions/requestApproval" => (
            json!({"permissions": params.get("permissions"), "scope": "turn"}),
            json!({"permissions": {}}),
        ),
        "mcpServer/elicitation/request" => (
            json!({"action": "accept", "content": {}}),
            json!({"action": "decline"}),
        ),
        _ => decisions(),
    };
    Some((what, allow, deny))
}

fn short(text: &str) -> String {
    shorten(text, MAX_SUMMARY)
}

/// Whether nothing needs to be filled in.
fn is_yes_or_no(params: &Value) -> bool {
    text(params, "/mode") == Some("form")
        && params
            .pointer("/requestedSchema/required")
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty)
}

/// The answer to what is not put to people.
fn unasked(id: &Value, method: &str, params: &Value) -> Vec<u8> {
    match method {
        "mcpServer/elicitation/request" => rpc::answer(id, json!({"action": "decline"})),
        "item/tool/requestUserInput" => {
            let questions = params.pointer("/questions").and_then(Value::as_array);
            let answers: serde_json::Map<String, Value> = questions
                .into_iter()
                .flatten()
                .filter_map(|question| text(question, "/id"))
                .map(|question| (question.to_owned(), json!({"answers": [NOBODY]})))
                .collect();
            rpc::answer(id, json!({"answers": answers}))
        }
        _ => rpc::refuse(id, "not supported by this client"),
    }
}

const NOBODY: &str =
    "Nobody can answer here. Ask with the tool request_human if a person is needed.";

#[cfg(test)]
mod tests {
    use super::*;

    fn written(out: &[Effect]) -> Vec<Value> {
        out.iter()
            .filter_map(|effect| match effect {
                Effect::Write(bytes) => Some(serde_json::from_slice(bytes).expect("JSON")),
                _ => None,
            })
            .collect()
    }

    fn ask(asks: &mut Asks, id: Value, method: &str, params: Value) -> Vec<Effect> {
        let mut out = Vec::new();
        asks.asked(id, method, &params, &mut out);
        out
    }

    #[test]
    fn a_command_waits_for_a_person() {
        let mut asks = Asks::default();
        let params = json!({"threadId": "t", "command": "rm -r x", "reason": "clean up"});
        let out = ask(
            &mut asks,
            json!(7),
            "item/commandExecution/requestApproval",
            params,
        );
        assert_eq!(
            out,
            vec![Effect::Ask {
                question: "7".to_owned(),
                what: "run rm -r x (clean up)".to_owned()
            }]
        );
        let mut out = Vec::new();
        asks.decide("7", true, &mut out);
        asks.decide("7", false, &mut out);
        assert_eq!(
            written(&out),
            vec![json!({"id": 7, "result": {"decision": "accept"}})]
        );
    }

    #[test]
    fn no_is_said_in_the_words_of_each_question() {
        for (method, params, no) in [
            (
                "item/fileChange/requestApproval",
                json!({"threadId": "t"}),
                json!({"decision": "decline"}),
            ),
            (
                "item/permissions/requestApproval",
                json!({"threadId": "t", "permissions": {"network": {"enabled": true}}}),
                json!({"permissions": {}}),
            ),
            (
                "mcpServer/elicitation/request",
                json!({"threadId": "t", "mode": "form", "message": "sure?", "requestedSchema": {"properties": {}}}),
                json!({"action": "decline"}),
            ),
        ] {
            let mut asks = Asks::default();
            let out = ask(&mut asks, json!("q"), method, params);
            assert!(matches!(&out[..], [Effect::Ask { .. }]), "{out:?}");
            let mut out = Vec::new();
            asks.decide("\"q\"", false, &mut out);
            assert_eq!(written(&out), vec![json!({"id": "q", "result": no})]);
        }
    }

    #[test]
    fn what_is_no_permission_is_answered_at_once() {
        let mut asks = Asks::default();
        let form = json!({"mode": "form", "requestedSchema": {"required": ["name"]}});
        let out = ask(&mut asks, json!(1), "mcpServer/elicitation/request", form);
        assert_eq!(
            written(&out),
            vec![json!({"id": 1, "result": {"action": "decline"}})]
        );
        let input = json!({"questions": [{"id": "a"}]});
        let out = ask(&mut asks, json!(2), "item/tool/requestUserInput", input);
        assert_eq!(
            written(&out)[0]["result"]["answers"]["a"]["answers"][0],
            NOBODY
        );
        let out = ask(&mut asks, json!(3), "attestation/generate", json!({}));
        assert_eq!(written(&out)[0]["error"]["code"], -32601);
    }

    #[test]
    fn a_question_ends_with_its_turn_or_when_the_program_says_so() {
        let mut asks = Asks::default();
        let method = "item/fileChange/requestApproval";
        ask(&mut asks, json!(1), method, json!({"threadId": "a"}));
        ask(&mut asks, json!(2), method, json!({"threadId": "b"}));
        let mut out = Vec::new();
        asks.withdraw("a", &mut out);
        asks.resolved(&json!(2), &mut out);
        asks.resolved(&json!(2), &mut out);
        assert_eq!(
            out,
            ["1", "2"].map(|question| Effect::AskWithdrawn {
                question: question.to_owned()
            })
        );
    }

    #[test]
    fn a_program_that_asks_without_end_is_declined() {
        let mut asks = Asks::default();
        for number in 0..=MAX_OPEN {
            let out = ask(
                &mut asks,
                json!(number),
                "item/fileChange/requestApproval",
                json!({"threadId": "a"}),
            );
            assert_eq!(written(&out).is_empty(), number < MAX_OPEN);
        }
    }
}
