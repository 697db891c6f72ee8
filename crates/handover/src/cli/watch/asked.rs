//! An agent that asks for a person, told to whoever watches.

use std::time::Duration;

use handover_protocol::client::{ClientError, Notification};
use handover_protocol::{AgentId, DesktopId, Event, Method, SubscribeParams, SubscribeResult};
use serde_json::{Value, json};

use super::super::session::Session;
use super::super::text::{plain, shortened};

/// The event that tells of it.
const KIND: &str = "request_human";

/// The longest reason that is shown, in characters.
const REASON: usize = 200;

/// What an agent asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    agent: Option<AgentId>,
    desktop: Option<DesktopId>,
    request: String,
    reason: String,
}

/// How long the host may take to begin to tell: what is watched is the desktop, with or without this.
const BEGIN: Duration = Duration::from_secs(5);

/// Has the host tell of every request from now on.
pub async fn listen(session: &Session) {
    let params = SubscribeParams {
        kinds: Some(vec![KIND.to_owned()]),
        ..SubscribeParams::default()
    };
    let begun: Result<SubscribeResult, ClientError> = session
        .client
        .call(Method::Subscribe, &params, Some(BEGIN))
        .await;
    if let Err(error) = begun {
        tracing::debug!(%error, "requests are not told of");
    }
}

impl Asked {
    /// What a notification says of it, if it does.
    pub fn heard(news: &Notification) -> Option<Self> {
        if news.method != "event" {
            return None;
        }
        let event: Event = serde_json::from_value(news.params.clone()).ok()?;
        let field = |name: &str| {
            event
                .fields
                .get(name)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        (event.kind == KIND).then(|| Self {
            request: field("requestId").unwrap_or_default(),
            reason: field("reason").unwrap_or_default(),
            agent: event.agent.clone(),
            desktop: event.desktop.clone(),
        })
    }

    /// For people, on one line.
    pub fn text(&self) -> String {
        let who = self
            .agent
            .as_ref()
            .map_or("an agent", |agent| agent.as_str());
        let place = self
            .desktop
            .as_ref()
            .map_or_else(String::new, |desktop| format!(" at {desktop}"));
        format!(
            "{} asks for a person{}: {}",
            plain(who),
            plain(&place),
            shortened(&self.reason, REASON)
        )
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "event": KIND, "requestId": self.request, "agent": self.agent, "desktop": self.desktop,
            "reason": self.reason,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_and_harmless() {
        let news = |kind: &str| Notification {
            method: "event".to_owned(),
            params: json!({
                "seq": 1, "at": "2026-01-31T09:30:00.250Z", "kind": kind, "source": "agent",
                "actor": {"uid": 1, "pid": 2}, "uid": 1, "pid": 2, "desktop": "d1", "agent": "a1",
                "requestId": "r1", "reason": "log in\u{1b}[2J",
            }),
        };
        let asked = Asked::heard(&news(KIND)).unwrap();
        assert_eq!(asked.text(), r"a1 asks for a person at d1: log in\u{1b}[2J");
        assert_eq!(asked.json()["requestId"], "r1");
        assert_eq!(Asked::heard(&news("paused")), None);
    }
}
