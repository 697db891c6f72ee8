//! Who is calling: the kernel's word on the sender of each message, and what stands above it.

use std::time::Duration;

use handover_control::Moment;
use handover_protocol::{AgentId, Refusal};

use crate::system::creds::Sender;
use crate::system::process::ProcessIdentity;

/// One connection to the attach socket, numbered by the host from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// What makes us take a caller for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// It has a controlling terminal.
    Tty,
    /// It is in a login session.
    Logind,
    /// Nothing but that no agent and no desktop stands above it.
    Lineage,
}

impl Evidence {
    /// The word in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tty => "tty",
            Self::Logind => "logind",
            Self::Lineage => "lineage",
        }
    }
}

/// What a caller is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CallerKind {
    /// A person.
    Human {
        /// Why we think so.
        evidence: Evidence,
    },
    /// An agent.
    Agent {
        /// Which, if it runs below a keeper of this session.
        id: Option<AgentId>,
    },
    /// A program on a desktop.
    App {
        /// The desktop's id in its session, as its keeper shows it.
        desktop: String,
    },
}

/// The sender of one message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller {
    /// What it is.
    pub kind: CallerKind,
    /// Its user.
    pub uid: u32,
    /// Its pid.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// The client's name, as it said in `hello`; empty before.
    pub via: String,
    /// Its connection.
    pub connection: ConnectionId,
    /// For a person: the environment variable that marks a known agent program above it. Then acts
    /// that only a person may do need [`Callers::confirm`].
    pub marked: Option<String>,
}

/// Tells callers apart. One per host.
#[derive(Debug)]
pub struct Callers {}

impl Callers {
    /// For the host of one session.
    pub fn new() -> Self {
        unimplemented!()
    }

    /// From now on what runs below `keeper` is agent `id`.
    pub fn agent_started(&self, _keeper: ProcessIdentity, _id: AgentId) {
        unimplemented!()
    }

    /// The keeper has ended.
    pub fn agent_ended(&self, _keeper: ProcessIdentity) {
        unimplemented!()
    }

    /// Who sent a message. `accepted` is when the connection was accepted. Refused with
    /// `caller_refused`: another user, a sender that is dead or unknown to the kernel, a broken chain
    /// of parents, a process that started after the connection was accepted.
    pub fn identify(
        &self,
        _sender: Sender,
        _connection: ConnectionId,
        _accepted: Moment,
    ) -> Result<Caller, Refusal> {
        unimplemented!()
    }

    /// Asks on the caller's controlling terminal whether a person wants `act` ("take control of d1"),
    /// and waits up to `wait` for a yes. At once `Ok` for a person without a mark; refused with
    /// `caller_refused` for anybody else, without a terminal, and without a yes.
    pub async fn confirm(
        &self,
        _caller: &Caller,
        _act: &str,
        _wait: Duration,
    ) -> Result<(), Refusal> {
        unimplemented!()
    }
}
