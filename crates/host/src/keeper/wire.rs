//! What host and keeper say to each other: one JSON object a line, on the keeper's socket.
//!
//! A keeper outlives hosts, so the two may be of different versions: fields are only ever added, with
//! a default, and an unknown request is answered with an error.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::system::process::ProcessIdentity;

/// A program to be started below the keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Launch {
    /// Program and arguments; never a shell string.
    pub command: Vec<String>,
    /// Working directory.
    pub cwd: PathBuf,
    /// The whole environment; nothing is inherited. The keeper adds its marker.
    pub env: BTreeMap<String, String>,
    /// Where its output goes, appended; made 0600.
    pub log: PathBuf,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    /// Its process.
    pub process: ProcessIdentity,
    /// How it ended, if it has.
    pub exit: Option<Exit>,
}
