//! Permissions that an agent asks for.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::protocol;
use crate::driver::Effect;
use crate::driver::shorten::shorten;

/// More open questions than this are answered with no.
pub const MAX_OPEN: usize = 16;

/// The longest question that is put to a person, in bytes.
const MAX_QUESTION: usize = 4000;

/// The open questions.
#[derive(Debug, Default)]
pub struct Questions(BTreeMap<String, Question>);

#[derive(Debug)]
struct Question {
    id: Value,
    yes: Value,
    no: Value,
    call: Value,
}

impl Questions {
    /// The agent asks.
    pub fn open(&mut self, id: Value, mut params: Value, out: &mut Vec<Effect>) {
        let mut take = |field: &str| params.get_mut(field).map(Value::take).unwrap_or_default();
        let options = take("options");
        // A person says yes to this once. What allows more is only taken where there is no such choice.
        let (yes, for_good) = match choice(&options, "allow_once") {
            Some(yes) => (Some(yes), false),
            None => (choice(&options, "allow_always"), true),
        };
        let no = choice(&options, "reject_once").or_else(|| choice(&options, "reject_always"));
        let no = no.unwrap_or_else(cancelled);
        let Some(yes) = yes.filter(|_| self.0.len() < MAX_OPEN) else {
            out.push(Effect::Write(protocol::answer(&id, &no)));
            return;
        };
        let call = take("toolCall");
        let mut what = describe(&call);
        if for_good {
            what.push_str("\n(yes allows it from now on)");
        }
        let name = id.to_string();
        let question = Question { id, yes, no, call };
        if self.0.insert(name.clone(), question).is_none() {
            let what = shorten(&what, MAX_QUESTION);
            out.push(Effect::Ask {
                question: name,
                what,
            });
        }
    }

    /// A person has decided. Answers the tool call that was allowed.
    pub fn decide(&mut self, name: &str, allow: bool, out: &mut Vec<Effect>) -> Option<Value> {
        let question = self.0.remove(name)?;
        let answer = if allow { &question.yes } else { &question.no };
        out.push(Effect::Write(protocol::answer(&question.id, answer)));
        allow.then_some(question.call)
    }

    /// The turn is cancelled or over, and nobody will decide.
    pub fn cancel(&mut self, out: &mut Vec<Effect>) {
        for (name, question) in std::mem::take(&mut self.0) {
            out.push(Effect::Write(protocol::answer(&question.id, &cancelled())));
            out.push(Effect::AskWithdrawn { question: name });
        }
    }
}

fn choice(options: &Value, kind: &str) -> Option<Value> {
    let mut options = options.as_array()?.iter();
    let option = options.find(|option| option["kind"] == kind)?;
    let outcome = json!({"outcome": "selected", "optionId": option["optionId"]});
    Some(json!({"outcome": outcome}))
}

fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

/// The call in words: its title, then what else the agent says of it.
fn describe(call: &Value) -> String {
    let title = call["title"].as_str().unwrap_or("use a tool");
    let details = call["content"].as_array().into_iter().flatten();
    let details = details.filter_map(|part| part["content"]["text"].as_str());
    std::iter::once(title)
        .chain(details)
        .collect::<Vec<_>>()
        .join("\n")
}
