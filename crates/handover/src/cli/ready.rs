//! What a host tells when it is ready, and how `up` reads it.

use std::path::PathBuf;

use handover_protocol::{DesktopView, ErrorCode, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::failure::Failure;
use super::list;
use super::text::plain;

/// A session that is up: the object that `up --json` prints.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ready {
    /// The session.
    pub session_id: SessionId,
    /// Its name for people.
    pub name: String,
    /// The host's process.
    pub pid: u32,
    /// The attach socket.
    pub socket_path: PathBuf,
    /// Where its sockets are.
    pub runtime_dir: PathBuf,
    /// Where its record is.
    pub state_dir: PathBuf,
    /// Its desktops; not what the host tells at its start, but as they stand then.
    #[serde(skip_deserializing)]
    pub desktops: Vec<DesktopView>,
}

impl Ready {
    /// Reads the first line of a host's output: that it is ready, or why it is not.
    pub fn parse(line: &str) -> Result<Self, Failure> {
        let not_understood = || {
            let message = "the host said something that is not understood at its start";
            Failure::new(ErrorCode::Internal, message)
        };
        let value: Value = serde_json::from_str(line).map_err(|_| not_understood())?;
        let Some(error) = value.get("error") else {
            return serde_json::from_value(value).map_err(|_| not_understood());
        };
        let text = |name: &str| error.get(name).and_then(Value::as_str);
        let code = text("code")
            .and_then(|code| code.parse().ok())
            .unwrap_or(ErrorCode::Internal);
        let mut failure = Failure::new(code, text("message").unwrap_or("the host did not start"));
        let data = error.get("data").and_then(Value::as_object);
        for (name, value) in data.unwrap_or(&Map::new()) {
            failure = failure.with(name, value);
        }
        Err(failure)
    }

    /// For people.
    pub fn render(&self) -> String {
        format!(
            "session {} ({}) is up, host pid {}\n  socket  {}\n  record  {}\n{}",
            self.session_id,
            plain(&self.name),
            self.pid,
            plain(&self.socket_path.to_string_lossy()),
            plain(&self.state_dir.to_string_lossy()),
            list::desktops(&self.desktops)
        )
    }
}

#[cfg(test)]
mod tests {
    use handover_protocol::{Control, Phase, Size};

    use super::*;

    fn ready() -> Ready {
        Ready {
            session_id: "k3j2h1x9".into(),
            name: "shop".to_owned(),
            pid: 4711,
            socket_path: "/run/user/1000/handover/k3j2h1x9/attach.sock".into(),
            runtime_dir: "/run/user/1000/handover/k3j2h1x9".into(),
            state_dir: "/home/ada/.local/state/handover/sessions/k3j2h1x9".into(),
            desktops: vec![DesktopView {
                id: "d1".into(),
                size: Size::default(),
                control: Control::Agent,
                phase: Phase::Steady,
                epoch: 1,
                lease: None,
            }],
        }
    }

    #[test]
    fn as_a_person_sees_it() {
        insta::assert_snapshot!(ready().render(), @"
        session k3j2h1x9 (shop) is up, host pid 4711
          socket  /run/user/1000/handover/k3j2h1x9/attach.sock
          record  /home/ada/.local/state/handover/sessions/k3j2h1x9
          DESKTOP  SIZE      CONTROL  EPOCH  HOLDER
          d1       1280x800  agent    1
        ");
    }

    #[test]
    fn it_reads_back() {
        let line = serde_json::to_string(&ready()).unwrap();
        assert_eq!(Ready::parse(&line).unwrap().pid, 4711);
    }

    #[test]
    fn a_failure_keeps_its_code() {
        let failure = Failure::new(ErrorCode::AlreadyRunning, "no").with("pid", 7);
        let read = Ready::parse(&failure.to_json().to_string()).unwrap_err();
        assert_eq!(read.code(), ErrorCode::AlreadyRunning);
        assert_eq!(read.to_json()["error"]["data"]["pid"], 7);
        assert_eq!(
            Ready::parse("thread panicked").unwrap_err().code(),
            ErrorCode::Internal
        );
    }
}
