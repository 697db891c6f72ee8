//! What host and keeper say to each other: one JSON object a line, on the keeper's socket.
//!
//! A keeper outlives hosts, so the two may be of different versions: fields are only ever added, with
//! a default, unknown fields are passed over, and an unknown request is answered with an error.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::system::process::ProcessIdentity;

/// The longest line in bytes, either way.
pub const MAX_LINE: usize = 1 << 20;

/// The environment variable that marks everything started below a keeper; its value is the keeper's
/// [`marker`].
pub const MARKER: &str = "HANDOVER_KEEPER";

/// What names one keeper for ever, within one boot.
pub fn marker(keeper: ProcessIdentity) -> String {
    format!("{}:{}", keeper.pid, keeper.start_ticks)
}

/// A program to be started below the keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Launch {
    /// Program and arguments; never a shell string. A program without a slash is looked up in the
    /// `PATH` of `env`.
    pub command: Vec<String>,
    /// Working directory.
    pub cwd: PathBuf,
    /// The whole environment; nothing is inherited. The keeper adds its marker.
    pub env: BTreeMap<String, String>,
    /// Where its output goes, appended; made 0600. Not touched if there is `stdio`.
    pub log: PathBuf,
    /// Its standard streams, instead of an empty input and the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdio: Option<Fifos>,
    /// Two more pipes, for a program that is driven by them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelFifos>,
}

/// What a program reads commands from as its descriptor 3 and answers them on as its descriptor 4, as
/// named pipes of which the host holds the other ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelFifos {
    /// What the program reads.
    pub commands: PathBuf,
    /// What it writes to.
    pub answers: PathBuf,
}

/// The three standard streams of a program, as named pipes of which the host holds the other ends: a
/// reader and a writer of `stdin`, a reader of the other two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fifos {
    /// What the program reads.
    pub stdin: PathBuf,
    /// What it writes to.
    pub stdout: PathBuf,
    /// Where it complains.
    pub stderr: PathBuf,
}

/// How to reach a display server. Secrets are told by the files that hold them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerAccess {
    /// The display's number.
    pub display: u32,
    /// Its X cookie, an Xauthority file.
    pub xauthority: PathBuf,
    /// Where it listens for RFB.
    pub rfb_socket: PathBuf,
    /// Its passwords, as JSON.
    pub passwords: PathBuf,
}

/// What the host asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase")]
pub enum Request {
    /// Start a program in a session of its own; the answer is its [`ProcessIdentity`].
    Launch {
        /// What.
        launch: Launch,
    },
    /// Start the display server, which dies with the keeper; the answer is its [`ProcessIdentity`].
    StartServer {
        /// What.
        launch: Launch,
        /// How the keeper reaches it; without, buttons that a dying host holds stay pressed until the
        /// next.
        #[serde(default)]
        access: Option<ServerAccess>,
    },
    /// The answer is a [`KeeperStatus`].
    Status,
    /// End the tree, then the keeper; the answer is the list of those that could not be killed.
    End {
        /// How long after TERM until KILL, in milliseconds.
        #[serde(rename = "graceMs")]
        grace_ms: u64,
    },
}

/// One line from the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestLine {
    /// Chosen by the host; comes back in the answer.
    pub id: u64,
    /// A [`Request`], read apart so that an unknown one can be answered.
    pub request: Value,
}

/// One line to the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum KeeperLine {
    /// It was done.
    Done {
        /// The request's.
        id: u64,
        /// As the request says.
        value: Value,
    },
    /// It was not done.
    Failed {
        /// The request's.
        id: u64,
        /// Why, for a person.
        reason: String,
    },
    /// A process that the keeper started has ended.
    Exited {
        /// Its pid.
        pid: u32,
        /// Whether it was the display server.
        server: bool,
        /// How.
        exit: Exit,
    },
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Exit {
    /// It returned this.
    Code(i32),
    /// A signal of this number ended it.
    Signal(i32),
}

/// What a keeper keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeeperStatus {
    /// The keeper itself.
    pub keeper: ProcessIdentity,
    /// The display server, if one was ever started.
    pub server: Option<ServerStatus>,
    /// Everything living below the keeper, the server included.
    pub descendants: Vec<ProcessIdentity>,
}

/// The display server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    /// Its process.
    pub process: ProcessIdentity,
    /// How it ended, if it has.
    pub exit: Option<Exit>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_without_streams_is_as_it_was() {
        let older = r#"{"command":["true"],"cwd":"/","env":{},"log":"/l"}"#;
        let launch: Launch = serde_json::from_str(older).unwrap();
        assert_eq!(launch.stdio, None);
        assert_eq!(serde_json::to_string(&launch).unwrap(), older);
    }

    #[test]
    fn the_lines_stay_as_older_keepers_write_them() {
        let end = serde_json::to_value(Request::End { grace_ms: 5 }).unwrap();
        assert_eq!(end.to_string(), r#"{"do":"end","graceMs":5}"#);
        let line = KeeperLine::Exited {
            pid: 7,
            server: true,
            exit: Exit::Signal(9),
        };
        assert_eq!(
            serde_json::to_string(&line).unwrap(),
            r#"{"exited":{"pid":7,"server":true,"exit":{"signal":9}}}"#
        );
        let newer = r#"{"done":{"id":1,"value":[],"more":true}}"#;
        assert_eq!(
            serde_json::from_str::<KeeperLine>(newer).unwrap(),
            KeeperLine::Done {
                id: 1,
                value: Value::Array(Vec::new())
            }
        );
    }
}
