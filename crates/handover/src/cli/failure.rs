//! How commands fail: a stable code, a message that says what to do, and an exit status.

use std::io::{self, Write};
use std::process::ExitCode;

use handover_protocol::client::ClientError;
use handover_protocol::{ErrorCode, LeaseView, Refusal};
use serde_json::{Map, Value, json};

use super::duration;
use super::text::{plain, plain_lines};
use crate::which;

/// Exit status of a usage error.
pub const USAGE: u8 = 2;
/// Exit status when there is no such session or host.
pub const NO_SESSION: u8 = 3;
/// Exit status of a command that a signal interrupted.
pub const INTERRUPTED: u8 = 130;

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    refusal: Refusal,
    exit: u8,
    /// Members that stand beside `ok` and `error` in JSON.
    extra: Map<String, Value>,
    /// Whether everything was said already.
    silent: bool,
}

impl Failure {
    /// A failure with the usual exit status of its code.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Refusal::new(code, message).into()
    }

    /// The command line is not right in itself.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            exit: USAGE,
            ..Self::new(ErrorCode::BadParams, message)
        }
    }

    /// The person interrupted the command, which has said so itself.
    pub fn interrupted() -> Self {
        let message = "interrupted";
        Self {
            exit: INTERRUPTED,
            silent: true,
            ..Self::new(ErrorCode::Timeout, message)
        }
    }

    /// Adds a fact for programs.
    pub fn with(mut self, name: &str, value: impl serde::Serialize) -> Self {
        self.refusal = self.refusal.with(name, value);
        self
    }

    /// Puts the members of a result beside the error.
    pub fn beside(mut self, result: Value) -> Self {
        if let Value::Object(members) = result {
            self.extra = members;
        }
        self
    }

    /// The same with `how` this command is told which desktop it is about, if that is what was left open.
    pub fn with_way_to_desktop(mut self, how: impl FnOnce() -> Option<String>) -> Self {
        self.refusal = which::desktop(self.refusal, how);
        self
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        self.refusal.code
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.refusal.message
    }

    /// The object that `--json` prints.
    pub fn to_json(&self) -> Value {
        let mut error = json!({
            "code": self.refusal.code,
            "message": self.refusal.message,
        });
        if !self.refusal.data.is_empty() {
            error["data"] = Value::Object(self.refusal.data.clone());
        }
        let mut object = self.extra.clone();
        object.insert("ok".to_owned(), false.into());
        object.insert("error".to_owned(), error);
        Value::Object(object)
    }

    /// What a person reads.
    pub fn to_text(&self) -> String {
        let mut text = format!("handover: {}", plain_lines(&self.refusal.message));
        let lease = self.refusal.fact::<LeaseView>("lease");
        // Where the message does not tell already.
        if let Some(lease) = lease.filter(|lease| !self.refusal.message.contains(&lease.holder)) {
            text.push_str(&format!(
                "\n  held by {} since {}, for {} more unless renewed",
                plain(&lease.holder),
                lease.since,
                duration::show(lease.expires_in_ms)
            ));
        }
        text.push_str(&format!("  [{}]", self.refusal.code));
        text
    }

    /// Tells it in the way that was asked for, and gives the exit status.
    pub fn report(&self, as_json: bool) -> ExitCode {
        if as_json && !self.silent {
            // If even that cannot be written, the exit status still tells.
            let _ = writeln!(io::stdout().lock(), "{}", self.to_json());
            return ExitCode::from(self.exit);
        }
        self.report_aside(false)
    }

    /// The same for a command whose standard output belongs to a protocol: nothing is written there.
    pub fn report_aside(&self, as_json: bool) -> ExitCode {
        if !self.silent {
            let told = if as_json {
                self.to_json().to_string()
            } else {
                self.to_text()
            };
            let _ = writeln!(io::stderr().lock(), "{told}");
        }
        ExitCode::from(self.exit)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let exit = if refusal.code == ErrorCode::SessionUnknown {
            NO_SESSION
        } else {
            1
        };
        Self {
            refusal,
            exit,
            extra: Map::new(),
            silent: false,
        }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        failure.refusal
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Refusal::from(error).into()
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        // Whoever read our output had enough of it.
        let silent = error.kind() == io::ErrorKind::BrokenPipe;
        Self {
            silent,
            ..Self::new(ErrorCode::Internal, error.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use handover_protocol::{LeaseName, Timestamp};

    use super::*;

    fn held() -> Failure {
        let lease = LeaseView {
            lease_id: LeaseName::from("l-1"),
            holder: "ada\u{1b}[2J (pid 7)".to_owned(),
            since: Timestamp(0),
            expires_in_ms: 12_000,
            viewer: None,
            viewer_connected: false,
            private: false,
        };
        Failure::new(
            ErrorCode::HumanLeaseHeld,
            "another person is in control; ask them",
        )
        .with("lease", lease)
    }

    #[test]
    fn for_people() {
        insta::assert_snapshot!(held().to_text(), @r"
        handover: another person is in control; ask them
          held by ada\u{1b}[2J (pid 7) since 1970-01-01T00:00:00.000Z, for 12 s more unless renewed  [human_lease_held]
        ");
    }

    #[test]
    fn for_programs() {
        let json = held().to_json();
        assert_eq!(json["ok"], false);
        assert_eq!(json["error"]["code"], "human_lease_held");
        assert_eq!(json["error"]["data"]["lease"]["expiresInMs"], 12_000);
    }

    #[test]
    fn exit_statuses() {
        assert_eq!(Failure::new(ErrorCode::Paused, "").exit, 1);
        assert_eq!(Failure::new(ErrorCode::SessionUnknown, "").exit, NO_SESSION);
        assert_eq!(Failure::new(ErrorCode::SessionAmbiguous, "").exit, 1);
        assert_eq!(Failure::usage("").exit, USAGE);
        assert_eq!(Failure::interrupted().exit, INTERRUPTED);
    }
}
