//! Who is calling: the kernel's word on the sender of each message, and what stands above it.
//!
//! What makes a person is where its process comes from. That resists honest and careless agents; a
//! hostile program of the same user that gets another program to act for it is not told apart.

mod confirm;
mod login;
mod marks;

pub(crate) use marks::is_mark;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use handover_control::Moment;
use handover_protocol::{AgentId, ErrorCode, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::keeper::{self, Owner};
use crate::system::cgroup::Cgroup;
use crate::system::creds::Sender;
use crate::system::process::{self, ProcessIdentity, Stat, TICKS_PER_SECOND};

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
    /// A program on a desktop, of this session or another.
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
    /// The client's name, as it said in `hello`; [`Callers::identify`] leaves it empty.
    pub via: String,
    /// Its connection.
    pub connection: ConnectionId,
    /// For a person: the mark of a known agent program above it (`CLAUDECODE`, …). Then acts that only
    /// a person may do need [`Callers::confirm`].
    pub marked: Option<String>,
}

impl Caller {
    /// A person's program that gives up what only a person may do is an agent of no name. Others stay what
    /// they are.
    pub fn give_up_power(&mut self) {
        if matches!(self.kind, CallerKind::Human { .. }) {
            self.kind = CallerKind::Agent { id: None };
            self.marked = None;
        }
    }
}

/// Tells callers apart. One per host, shared by all its connections.
#[derive(Debug)]
pub struct Callers {
    host: u32,
    uid: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    agents: HashMap<ProcessIdentity, AgentId>,
    /// By pid.
    remembered: HashMap<u32, Remembered>,
}

#[derive(Debug)]
struct Remembered {
    /// Stands for the process, whatever becomes of its number.
    process: OwnedFd,
    start_ticks: u64,
    verdict: Verdict,
}

#[derive(Debug, Clone)]
struct Verdict {
    kind: CallerKind,
    marked: Option<String>,
}

/// So many callers are remembered, each with a descriptor; then all are forgotten and looked at again.
const REMEMBERED: usize = 256;

impl Default for Callers {
    fn default() -> Self {
        Self::new()
    }
}

impl Callers {
    /// For the host that this process is.
    pub fn new() -> Self {
        Self {
            host: std::process::id(),
            uid: rustix::process::geteuid().as_raw(),
            state: Mutex::default(),
        }
    }

    /// From now on what runs below `keeper` is agent `id`. Call before anything is started there.
    pub fn agent_started(&self, keeper: ProcessIdentity, id: AgentId) {
        self.state().agents.insert(keeper, id);
    }

    /// That keeper has ended.
    pub fn agent_ended(&self, keeper: ProcessIdentity) {
        self.state().agents.remove(&keeper);
    }

    /// Who sent a message. `accepted` is when the connection was accepted. Refused with
    /// `caller_refused`: another user, a sender that has ended or that the kernel did not name, a
    /// broken chain of parents, a process that started after the connection was accepted, an orphan of
    /// a dead keeper.
    ///
    /// The first message of a process costs a look at everything above it. What was found holds for
    /// the life of that process: its descent does not change, and what once came from an agent or a
    /// desktop does not become a person by outliving it. After that a message costs one system call.
    pub fn identify(
        &self,
        sender: Sender,
        connection: ConnectionId,
        accepted: Moment,
    ) -> Result<Caller, Refusal> {
        if sender.uid != self.uid {
            return Err(refused(format!(
                "uid {} is not the user of this session; use your own session",
                sender.uid
            )));
        }
        if sender.pid == 0 {
            return Err(refused(
                "the sender cannot be seen from here; call from the same container as the host",
            ));
        }
        let (start_ticks, verdict) = match self.recall(sender.pid) {
            Some(known) => known,
            None => self.look_at(sender.pid)?,
        };
        // A start is known to the tick, rounded down.
        let started = u128::from(start_ticks) * 1_000_000_000 / u128::from(TICKS_PER_SECOND);
        if started > u128::from(accepted.as_nanos()) {
            return Err(refused(
                "the sender is younger than its connection; connect anew from the program that calls",
            ));
        }
        Ok(Caller {
            kind: verdict.kind,
            uid: sender.uid,
            pid: sender.pid,
            start_ticks,
            via: String::new(),
            connection,
            marked: verdict.marked,
        })
    }

    /// Asks on the caller's controlling terminal whether a person wants `act` ("take control of d1"),
    /// and waits up to `wait` for the word `yes`. At once `Ok` for a person without a mark. Refused
    /// with `caller_refused`: anybody else, no terminal of this user, another answer, no answer.
    pub async fn confirm(&self, caller: &Caller, act: &str, wait: Duration) -> Result<(), Refusal> {
        match (&caller.kind, &caller.marked) {
            (CallerKind::Human { .. }, None) => Ok(()),
            (CallerKind::Human { .. }, Some(mark)) => {
                confirm::ask(caller, act, mark, wait).await.map_err(refused)
            }
            (CallerKind::Agent { .. } | CallerKind::App { .. }, _) => {
                Err(refused("only a person may do this"))
            }
        }
    }

    /// What is known of the process that has this number now, if it still runs.
    fn recall(&self, pid: u32) -> Option<(u64, Verdict)> {
        let mut state = self.state();
        let known = state.remembered.get(&pid)?;
        if has_ended(&known.process) {
            state.remembered.remove(&pid);
            return None;
        }
        Some((known.start_ticks, known.verdict.clone()))
    }

    fn look_at(&self, pid: u32) -> Result<(u64, Verdict), Refusal> {
        let ended = || refused("the sender has ended before its message was read");
        let identity = ProcessIdentity::of(pid).map_err(|_| ended())?;
        let process = identity.open().map_err(|_| ended())?;
        let verdict = self.judge(pid)?;
        // What we looked at was this process, if it has not ended by now.
        if has_ended(&process) {
            return Err(ended());
        }
        let mut state = self.state();
        if state.remembered.len() >= REMEMBERED {
            state.remembered.clear();
        }
        state.remembered.insert(
            pid,
            Remembered {
                process,
                start_ticks: identity.start_ticks,
                verdict: verdict.clone(),
            },
        );
        Ok((identity.start_ticks, verdict))
    }

    fn judge(&self, pid: u32) -> Result<Verdict, Refusal> {
        let chain = process::ancestry(pid).map_err(|_| {
            refused("what started the sender is ending; call again from a program that stays")
        })?;
        let mut agent = None;
        let mut below_agent = false;
        for stat in &chain {
            match keeper::kept_by(stat) {
                // Whatever else stands between: it runs on a desktop.
                Some(Owner::Desktop(desktop)) => {
                    return Ok(Verdict {
                        kind: CallerKind::App { desktop },
                        marked: None,
                    });
                }
                Some(Owner::Agent(_)) => {
                    below_agent = true;
                    agent = agent.or_else(|| self.state().agents.get(&stat.identity()).cloned());
                }
                // A tool server of an agent, whose agent may stand further up.
                Some(Owner::Relay(_)) => below_agent = true,
                None => {}
            }
        }
        if below_agent {
            return Ok(Verdict {
                kind: CallerKind::Agent { id: agent },
                marked: None,
            });
        }
        if let Some(kind) = self.by_group(&chain)? {
            return Ok(Verdict { kind, marked: None });
        }
        // The kernel gives a dead keeper's orphans to the host; the host itself starts no callers.
        let is_orphan = chain.iter().skip(1).any(|stat| stat.pid == self.host)
            || chain.iter().any(keeper::carries_marker);
        if is_orphan {
            return Err(orphan());
        }
        Ok(Verdict {
            kind: CallerKind::Human {
                evidence: login::evidence(&chain[0]),
            },
            marked: chain.iter().find_map(marks::mark_of),
        })
    }

    /// What a process is that has got away from its keeper, but not out of its control group.
    fn by_group(&self, chain: &[Stat]) -> Result<Option<CallerKind>, Refusal> {
        let Some(root) = chain.iter().find_map(|stat| Cgroup::root_around(stat.pid)) else {
            return Ok(None);
        };
        if let Some(agent) = self.state().agents.get(&root) {
            let id = Some(agent.clone());
            return Ok(Some(CallerKind::Agent { id }));
        }
        let keeper = Stat::of(root.pid)
            .ok()
            .filter(|stat| stat.identity() == root);
        match keeper.as_ref().and_then(keeper::kept_by) {
            Some(Owner::Desktop(desktop)) => Ok(Some(CallerKind::App { desktop })),
            Some(Owner::Agent(_) | Owner::Relay(_)) => Ok(Some(CallerKind::Agent { id: None })),
            None => Err(orphan()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether this process runs below a keeper, or was started below one that is gone. There a host must
/// not bind, since its callers could not be told apart.
pub fn is_below_keeper() -> bool {
    let is_kept = |stat: &Stat| {
        keeper::kept_by(stat).is_some()
            || keeper::carries_marker(stat)
            || Cgroup::root_around(stat.pid).is_some()
    };
    process::ancestry(std::process::id()).is_ok_and(|chain| chain.iter().any(is_kept))
}

/// A process's descriptor becomes readable when it ends, as a zombie already.
fn has_ended(process: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

fn orphan() -> Refusal {
    refused("the sender was started below a keeper that is gone; call from a terminal")
}

fn refused(message: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::CallerRefused, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::clock;

    fn own() -> Sender {
        Sender {
            pid: std::process::id(),
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }

    fn identify(sender: Sender, accepted: Moment) -> Result<Caller, Refusal> {
        Callers::new().identify(sender, ConnectionId(1), accepted)
    }

    #[test]
    fn senders_that_are_nobody_are_refused() {
        let other_user = Sender {
            uid: own().uid + 1,
            ..own()
        };
        let outside = Sender { pid: 0, ..own() };
        let never = Sender {
            pid: i32::MAX as u32,
            ..own()
        };
        for sender in [other_user, outside, never] {
            let refusal = identify(sender, clock::now()).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::CallerRefused);
        }
        let before_us = Moment::from_nanos(1);
        let refusal = identify(own(), before_us).unwrap_err();
        assert!(refusal.message.contains("younger"), "{refusal}");
    }

    #[test]
    fn a_zombie_is_refused() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let sender = Sender {
            pid: child.id(),
            ..own()
        };
        while Stat::of(child.id()).unwrap().is_living() {
            std::thread::yield_now();
        }
        assert!(identify(sender, clock::now()).is_err());
        child.wait().unwrap();
    }

    #[test]
    fn a_remembered_caller_costs_little() {
        let callers = Callers::new();
        let accepted = clock::now();
        let Ok(first) = callers.identify(own(), ConnectionId(1), accepted) else {
            return; // This test itself runs below a keeper.
        };
        let thousand = || {
            let start = std::time::Instant::now();
            for _ in 0..1000 {
                let again = callers.identify(own(), ConnectionId(1), accepted).unwrap();
                assert_eq!(again, first);
            }
            start.elapsed()
        };
        // Some µs each. A busy machine may hold up any one round, but not every one.
        assert!((0..20).any(|_| thousand() < Duration::from_millis(100)));
    }
}
