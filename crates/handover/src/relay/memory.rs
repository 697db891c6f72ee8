//! What a server that is started again has to be told, so that its client need not notice.
//!
//! How it was greeted, and what the client has set since. What a server keeps beside that is its own affair.
//! If there is more than can be told again, or the server waits for an answer of the client's, which would
//! reach the wrong one, it cannot be started again.

use std::collections::HashSet;

use super::records::Id;

/// Most settings that are kept, and the most bytes of one of them.
const MAX_SETTINGS: usize = 256;
const MAX_PARAMS: usize = 64 << 10;
/// Most requests of the server's that the client has not answered.
const MAX_QUESTIONS: usize = 1024;

/// The request that begins a connection, and the client's word that it has the answer.
const INITIALIZE: &str = "initialize";
const INITIALIZED: &str = "notifications/initialized";
/// Requests that set something. The latest level counts, and each subscription until it is taken back.
const SET_LEVEL: &str = "logging/setLevel";
const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// A request that is to be made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Its method.
    pub(super) method: &'static str,
    /// Its parameters, as JSON.
    pub(super) params: String,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Memory {
    greeting: Option<Asked>,
    confirmed: bool,
    settings: Vec<Asked>,
    questions: HashSet<Id>,
    overflowed: bool,
}

impl Memory {
    /// The client asks the server for something.
    pub(super) fn client_asks(&mut self, method: &str, params: Option<&str>) {
        let method = match method {
            INITIALIZE => INITIALIZE,
            SET_LEVEL => SET_LEVEL,
            SUBSCRIBE => SUBSCRIBE,
            UNSUBSCRIBE => UNSUBSCRIBE,
            _ => return,
        };
        let params = params.unwrap_or("{}");
        if params.len() > MAX_PARAMS {
            self.overflowed = true;
            return;
        }
        let params = params.to_owned();
        match method {
            INITIALIZE => {
                *self = Self {
                    greeting: Some(Asked { method, params }),
                    questions: std::mem::take(&mut self.questions),
                    ..Self::default()
                };
                return;
            }
            SET_LEVEL => self.settings.retain(|asked| asked.method != SET_LEVEL),
            _ => self.settings.retain(|asked| asked.params != params),
        }
        if method == UNSUBSCRIBE {
            return;
        }
        self.settings.push(Asked { method, params });
        self.overflowed |= self.settings.len() > MAX_SETTINGS;
        self.settings.truncate(MAX_SETTINGS);
    }

    /// The client says something that needs no answer.
    pub(super) fn client_notifies(&mut self, method: &str) {
        self.confirmed |= method == INITIALIZED;
    }

    /// The client answers the server, under an id if it could read the request.
    pub(super) fn client_answers(&mut self, id: Option<&Id>) {
        if let Some(id) = id {
            self.questions.remove(id);
        }
    }

    /// The server asks the client for something.
    pub(super) fn server_asks(&mut self, id: &Id) {
        if self.questions.len() < MAX_QUESTIONS {
            self.questions.insert(id.clone());
        } else {
            self.overflowed = true;
        }
    }

    /// Whether everything can be told again.
    pub(super) fn is_complete(&self) -> bool {
        !self.overflowed && self.questions.is_empty()
    }

    /// How the server was greeted, if it was.
    pub(super) fn greeting(&self) -> Option<&Asked> {
        self.greeting.as_ref()
    }

    /// Whether the client has confirmed the greeting.
    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// What was set after that, in this order.
    pub(super) fn settings(&self) -> &[Asked] {
        &self.settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_again() {
        let mut memory = Memory::default();
        assert!(memory.is_complete() && memory.greeting().is_none());
        memory.client_asks("initialize", Some(r#"{"protocolVersion":"1"}"#));
        memory.client_notifies("notifications/initialized");
        memory.client_asks("tools/list", Some("{}"));
        memory.client_asks("logging/setLevel", Some(r#"{"level":"info"}"#));
        for uri in ["a", "b", "a"] {
            memory.client_asks(
                "resources/subscribe",
                Some(&format!(r#"{{"uri":"{uri}"}}"#)),
            );
        }
        memory.client_asks("resources/unsubscribe", Some(r#"{"uri":"b"}"#));
        memory.client_asks("logging/setLevel", Some(r#"{"level":"error"}"#));
        let told: Vec<&str> = memory
            .settings()
            .iter()
            .map(|asked| &*asked.params)
            .collect();
        assert_eq!(told, [r#"{"uri":"a"}"#, r#"{"level":"error"}"#]);
        assert!(memory.is_confirmed() && memory.is_complete());
        // A new greeting begins anew.
        memory.client_asks("initialize", None);
        assert_eq!(memory.greeting().map(|asked| &*asked.params), Some("{}"));
        assert!(memory.settings().is_empty() && !memory.is_confirmed());
    }

    #[test]
    fn what_cannot_be_told_again() {
        let mut memory = Memory::default();
        let id = Id::Number("1".into());
        memory.server_asks(&id);
        assert!(!memory.is_complete());
        memory.client_answers(Some(&id));
        assert!(memory.is_complete());
        for number in 0..=MAX_SETTINGS {
            memory.client_asks("resources/subscribe", Some(&number.to_string()));
        }
        assert!(!memory.is_complete());
        assert_eq!(memory.settings().len(), MAX_SETTINGS);
        let mut memory = Memory::default();
        memory.client_asks("initialize", Some(&"x".repeat(MAX_PARAMS + 1)));
        assert!(!memory.is_complete());
    }
}
