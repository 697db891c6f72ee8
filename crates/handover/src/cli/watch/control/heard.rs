//! What is heard while in control: news from the host, and lines from the keyboard.

use std::time::{Duration, Instant};

use handover_protocol::client::Notification;
use handover_protocol::{
    ErrorCode, LeaseEnded, LeaseRequest, LeaseRequestEnded, LeaseWarning, Limit, Method,
};
use serde_json::json;

use super::super::super::duration;
use super::super::super::failure::Failure;
use super::super::super::text::{plain, shortened};
use super::super::asked::Asked;
use super::{ASKING, Takeover};

/// How long the terminal's title tells of an agent's request.
const CALLED: Duration = Duration::from_secs(60);

/// Whether another person asks for control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// Nobody has asked.
    Never,
    /// Somebody asks and waits for an answer.
    Now,
    /// Whoever asked has been answered or has gone.
    Over,
}

/// A call to the terminal.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// For what.
    pub reason: Reason,
    /// When it has passed.
    pub until: Instant,
}

/// What a person is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Another person asks for control.
    Request,
    /// An agent asks for a person, or control is about to end.
    Other,
}

impl Takeover {
    /// Deals with a notification; true if the takeover has ended.
    pub(super) fn heard(&mut self, news: Notification) -> bool {
        if let Some(asked) = Asked::heard(&news) {
            let _ = self.screen.say(&asked.text(), asked.json());
            self.call(&asked.text(), Reason::Other, CALLED);
            return false;
        }
        let params = news.params;
        match news.method.as_str() {
            "lease_ended" => serde_json::from_value::<LeaseEnded>(params)
                .is_ok_and(|ended| ended.lease_id == self.lease.lease_id),
            "lease_warning" => {
                if let Ok(warning) = serde_json::from_value::<LeaseWarning>(params) {
                    let left = duration::show(warning.left_ms);
                    let text = match warning.limit {
                        Limit::Idle => format!("control ends in {left} unless you do something"),
                        Limit::Maximum => format!("control ends in {left}, its time is over"),
                    };
                    let json = json!({
                        "event": "warning", "limit": warning.limit, "leftMs": warning.left_ms,
                    });
                    let _ = self.screen.say(&text, json);
                    let left = Duration::from_millis(warning.left_ms);
                    self.call(&text, Reason::Other, left);
                }
                false
            }
            "lease_request" => {
                if let Ok(request) = serde_json::from_value::<LeaseRequest>(params) {
                    self.asked(&request);
                }
                false
            }
            "lease_request_ended" => {
                if let Ok(over) = serde_json::from_value::<LeaseRequestEnded>(params) {
                    self.unasked(&over);
                }
                false
            }
            _ => false,
        }
    }

    /// Another person asks for control.
    fn asked(&mut self, request: &LeaseRequest) {
        self.asking = Asking::Now;
        let why = request
            .note
            .as_deref()
            .map_or_else(String::new, |note| format!(" ({})", shortened(note, 200)));
        let text = format!(
            "{} asks for control{why}: type give or refuse and press Enter",
            plain(&request.from)
        );
        let json = json!({
            "event": "request", "from": request.from, "note": request.note,
        });
        let _ = self.screen.say(&text, json);
        self.call(&text, Reason::Request, ASKING);
    }

    /// That person does not ask any more, or has been answered.
    fn unasked(&mut self, over: &LeaseRequestEnded) {
        // Whoever has just answered knows.
        if std::mem::replace(&mut self.asking, Asking::Over) == Asking::Now {
            let text = format!("{} no longer asks for control", plain(&over.from));
            let json = json!({ "event": "request_ended", "from": over.from });
            let _ = self.screen.say(&text, json);
        }
        self.calm(|call| call.reason == Reason::Request);
    }

    /// Calls the person to the terminal, for this long.
    fn call(&mut self, text: &str, reason: Reason, lasts: Duration) {
        self.attention.call(&format!("{}: {text}", self.desktop));
        let until = Instant::now() + lasts;
        self.called = Some(Call { reason, until });
    }

    /// Lets the terminal rest if what the person was called for has passed.
    pub(super) fn calm(&mut self, passed: impl Fn(&Call) -> bool) {
        if self.called.take_if(|call| passed(call)).is_some() {
            self.attention.rest();
        }
    }

    /// Deals with a line from the keyboard; true if the person is done.
    pub(super) async fn typed(&mut self, line: String) -> Result<bool, Failure> {
        let answer = match (line.as_str(), self.asking) {
            ("give", Asking::Now) => Method::ControlGive,
            ("refuse", Asking::Now) => Method::ControlRefuse,
            ("give" | "refuse", Asking::Over) => {
                self.nobody_asks();
                return Ok(false);
            }
            _ => {
                if !line.is_empty() {
                    self.note = Some(line);
                }
                return Ok(true);
            }
        };
        self.asking = Asking::Over;
        self.calm(|call| call.reason == Reason::Request);
        // After giving, the end of the lease is told like any other.
        let answered: Result<serde_json::Value, Failure> = self
            .session
            .call_patiently(answer, &self.lease_params())
            .await;
        match answered {
            // Whoever asked has gone while the answer was on its way.
            Err(failure) if failure.code() == ErrorCode::BadParams => self.nobody_asks(),
            answered => drop(answered?),
        }
        Ok(false)
    }

    fn nobody_asks(&mut self) {
        let text = "nobody asks for control any more; you still have it";
        let _ = self.screen.say(text, json!({ "event": "nobody_asks" }));
    }
}
