//! What extensions of pi ask. A person can only say yes or no, so only what can be answered so is put
//! to one; everything else is cancelled at once, as if its window had been closed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::protocol::Dialog;
use crate::driver::Effect;
use crate::driver::shorten::shorten;

/// More open questions than this are cancelled.
pub const MAX_OPEN: usize = 16;

/// The longest question that is put to a person, in bytes.
const MAX_QUESTION: usize = 4000;

/// Words that begin a choice which allows what was asked.
const YES: [&str; 8] = [
    "yes", "allow", "ok", "accept", "approve", "continue", "proceed", "run",
];

/// The open questions by pi's name, with what pi takes for a yes.
#[derive(Debug, Default)]
pub struct Dialogs(BTreeMap<String, Value>);

impl Dialogs {
    /// An extension asks or tells something.
    pub fn open(&mut self, dialog: Dialog, out: &mut Vec<Effect>) {
        let (yes, choice) = match dialog.method.as_str() {
            "confirm" => (Some(json!({"confirmed": true})), None),
            "select" => {
                let choice = dialog.options.iter().find(|option| allows(option));
                (choice.map(|option| json!({"value": option})), choice)
            }
            "input" | "editor" => (None, None),
            // It tells something, and waits for nothing.
            _ => return,
        };
        let Some(yes) = yes.filter(|_| self.0.len() < MAX_OPEN) else {
            answer(&dialog.id, json!({"cancelled": true}), out);
            return;
        };
        let mut what: Vec<String> = [dialog.title, dialog.message]
            .into_iter()
            .flatten()
            .collect();
        if what.is_empty() {
            what.push("an extension of pi asks for leave and does not say for what".to_owned());
        }
        if let Some(choice) = choice {
            what.push(format!("(yes chooses {choice:?})"));
        }
        self.0.insert(dialog.id.clone(), yes);
        out.push(Effect::Ask {
            question: dialog.id,
            what: shorten(&what.join("\n"), MAX_QUESTION),
        });
    }

    /// A person has decided.
    pub fn decide(&mut self, question: &str, allow: bool, out: &mut Vec<Effect>) {
        if let Some(yes) = self.0.remove(question) {
            let no = json!({"cancelled": true});
            answer(question, if allow { yes } else { no }, out);
        }
    }

    /// Nobody will decide any more.
    pub fn cancel(&mut self, out: &mut Vec<Effect>) {
        for question in self.0.keys() {
            answer(question, json!({"cancelled": true}), out);
        }
        self.withdraw(out);
    }

    /// pi waits for none of them any more.
    pub fn withdraw(&mut self, out: &mut Vec<Effect>) {
        for question in std::mem::take(&mut self.0).into_keys() {
            out.push(Effect::AskWithdrawn { question });
        }
    }
}

fn allows(option: &str) -> bool {
    let word: String = option
        .chars()
        .skip_while(|c| !c.is_alphanumeric())
        .take_while(|c| c.is_alphanumeric())
        .collect();
    YES.contains(&word.to_lowercase().as_str())
}

fn answer(question: &str, mut answer: Value, out: &mut Vec<Effect>) {
    answer["type"] = json!("extension_ui_response");
    answer["id"] = json!(question);
    out.push(Effect::Write(super::line(&answer)));
}
