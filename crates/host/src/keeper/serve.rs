//! The keeper's loop: signals, the socket, and the clock, in one `poll`.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, WaitStatus, wait};
use serde::Serialize;
use serde_json::Value;

use super::let_go::LettingGo;
use super::spawn::spawn;
use super::tree::end_below;
use super::wire::{
    Exit, KeeperLine, KeeperStatus, MAX_LINE, Request, RequestLine, ServerStatus, marker,
};
use super::{Arguments, Owner};
use crate::system::cgroup::Cgroup;
use crate::system::clock::boot_nanos;
use crate::system::creds;
use crate::system::process::{self, ProcessIdentity, Stat};
use crate::system::signals::SignalPipe;

/// A host connects right after it has started us; with an orphan timeout of zero it needs a moment.
const FIRST_CONNECTION: Duration = Duration::from_secs(10);

/// One host is the rule; a second may come while the first has not been noticed to be gone.
const MAX_CONNECTIONS: usize = 8;

/// How long programs get after TERM when nobody says.
const GRACE: Duration = Duration::from_secs(3);

/// Serves until the tree was ended by request, by `SIGTERM`, or for want of a host.
pub(super) fn serve(
    listener: &UnixListener,
    signals: &SignalPipe,
    arguments: &Arguments,
    group: Option<Cgroup>,
) -> io::Result<()> {
    let own = ProcessIdentity::own()?;
    let mut keeper = Keeper {
        own,
        marker: marker(own),
        server: None,
        started: HashMap::new(),
        connections: Vec::new(),
        letting_go: LettingGo::default(),
        group,
        signals,
        all_die_with_us: matches!(arguments.owner, Owner::Relay(_)),
    };
    let mut orphaned_at = boot_nanos();
    let mut patience = arguments.orphan_timeout.max(FIRST_CONNECTION);
    loop {
        let had_host = keeper.has_host();
        let wait = if !had_host {
            let gone = Duration::from_nanos(boot_nanos().saturating_sub(orphaned_at));
            let left = patience.saturating_sub(gone);
            if left.is_zero() {
                break;
            }
            let look = keeper.letting_go.look(gone, keeper.has_server());
            Some(look.map_or(left, |look| look.min(left)))
        } else {
            None
        };
        let ready = keeper.poll(listener, wait)?;
        if ready.signals {
            let arrived = signals.drain();
            if arrived.child {
                keeper.reap();
            }
            if arrived.stop {
                break;
            }
        }
        if ready.listener {
            keeper.accept(listener);
        }
        for index in ready.connections.into_iter().rev() {
            if let After::End { reply, grace } = keeper.read(index) {
                let survivors = keeper.end(grace);
                keeper.reply(index, reply, &survivors);
                let _ = std::fs::remove_file(&arguments.socket);
                return Ok(());
            }
        }
        if keeper.has_host() {
            patience = arguments.orphan_timeout;
        }
        keeper.connections.retain(|connection| !connection.closed);
        if had_host && !keeper.has_host() {
            orphaned_at = boot_nanos();
            keeper.letting_go.begin();
        }
    }
    // Nobody can begin anything while the tree ends.
    let _ = std::fs::remove_file(&arguments.socket);
    for survivor in keeper.end(GRACE) {
        eprintln!("handover keeper: pid {} cannot be killed", survivor.pid);
    }
    Ok(())
}

struct Keeper<'a> {
    own: ProcessIdentity,
    marker: String,
    /// The display server, kept after its end for those who ask later.
    server: Option<ServerStatus>,
    /// What we started and have not reaped, by pid.
    started: HashMap<u32, ProcessIdentity>,
    connections: Vec<Connection>,
    letting_go: LettingGo,
    /// That of the tree, where it can have one.
    group: Option<Cgroup>,
    signals: &'a SignalPipe,
    /// What is launched ends with the keeper, even if that is killed together with its host: nobody
    /// would be left to look for it.
    all_die_with_us: bool,
}

struct Connection {
    stream: UnixStream,
    input: Vec<u8>,
    /// It has sent a request. One that only looks whether we listen does not keep us waiting.
    is_host: bool,
    closed: bool,
}

struct Ready {
    signals: bool,
    listener: bool,
    /// Indices of connections with something to read.
    connections: Vec<usize>,
}

enum After {
    GoOn,
    End { reply: u64, grace: Duration },
}

impl Keeper<'_> {
    fn has_host(&self) -> bool {
        self.connections
            .iter()
            .any(|connection| connection.is_host && !connection.closed)
    }

    fn has_server(&self) -> bool {
        self.server.is_some_and(|server| server.exit.is_none())
    }

    fn poll(&mut self, listener: &UnixListener, wait: Option<Duration>) -> io::Result<Ready> {
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
        ];
        // A host that comes while we are at the display waits for its first answer: it would take our
        // connection there for a stranger's.
        let busy = self.letting_go.running();
        match busy {
            Some(end) => fds.push(PollFd::from_borrowed_fd(end, PollFlags::IN)),
            None => fds.extend(self.connections.iter().map(|connection| {
                PollFd::from_borrowed_fd(connection.stream.as_fd(), PollFlags::IN)
            })),
        }
        let timeout = wait.map(|wait| Timespec {
            tv_sec: wait.as_secs() as i64,
            tv_nsec: i64::from(wait.subsec_nanos()),
        });
        match poll(&mut fds, timeout.as_ref()) {
            // A signal: its pipe is readable by now, the next round sees it.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let mut ready = Ready {
            signals: is_ready(&fds[0]),
            listener: is_ready(&fds[1]),
            connections: (0..fds.len() - 2)
                .filter(|&index| is_ready(&fds[index + 2]))
                .collect(),
        };
        if busy.is_some() && !std::mem::take(&mut ready.connections).is_empty() {
            self.letting_go.ended();
        }
        Ok(ready)
    }

    /// Takes a connection of our own user that does not come from the tree we keep: what runs on a
    /// desktop must not launch past the host.
    fn accept(&mut self, listener: &UnixListener) {
        let Ok((stream, _)) = listener.accept() else {
            return;
        };
        let own_uid = rustix::process::geteuid().as_raw();
        let entitled = creds::peer(&stream).is_ok_and(|peer| {
            peer.uid == own_uid
                && process::ancestry(peer.pid)
                    .is_ok_and(|chain| chain.iter().all(|stat| stat.pid != self.own.pid))
        });
        // A host that does not read must not hold us up.
        let prepared = stream.set_nonblocking(true);
        if entitled && prepared.is_ok() && self.connections.len() < MAX_CONNECTIONS {
            self.connections.push(Connection {
                stream,
                input: Vec::new(),
                is_host: false,
                closed: false,
            });
        }
    }

    fn read(&mut self, index: usize) -> After {
        let mut chunk = [0u8; 16 * 1024];
        let connection = &mut self.connections[index];
        match connection.stream.read(&mut chunk) {
            Ok(0) => connection.closed = true,
            Ok(count) => connection.input.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => connection.closed = true,
        }
        while let Some(end) = self.connections[index]
            .input
            .iter()
            .position(|&byte| byte == b'\n')
        {
            let line: Vec<u8> = self.connections[index].input.drain(..=end).collect();
            if let After::End { reply, grace } = self.handle(index, &line) {
                return After::End { reply, grace };
            }
        }
        let connection = &mut self.connections[index];
        if connection.input.len() > MAX_LINE {
            connection.closed = true;
        }
        After::GoOn
    }

    fn handle(&mut self, index: usize, line: &[u8]) -> After {
        let Ok(line) = serde_json::from_slice::<RequestLine>(line) else {
            // Whoever writes this is no host.
            self.connections[index].closed = true;
            return After::GoOn;
        };
        self.connections[index].is_host = true;
        let id = line.id;
        match serde_json::from_value(line.request) {
            Ok(Request::Launch { launch }) => {
                let result = self.start(&launch, false);
                self.answer(index, id, result);
            }
            Ok(Request::StartServer { launch, access }) => {
                let result = if self.has_server() {
                    Err(io::Error::other("a display server is running"))
                } else {
                    self.letting_go = LettingGo::of(access);
                    self.start(&launch, true)
                };
                self.answer(index, id, result);
            }
            Ok(Request::Status) => {
                let status = self.status();
                self.answer(index, id, status);
            }
            Ok(Request::End { grace_ms }) => {
                return After::End {
                    reply: id,
                    grace: Duration::from_millis(grace_ms),
                };
            }
            Err(error) => self.send(
                index,
                &KeeperLine::Failed {
                    id,
                    reason: format!("this keeper does not understand the request: {error}"),
                },
            ),
        }
        After::GoOn
    }

    fn start(&mut self, launch: &super::wire::Launch, server: bool) -> io::Result<ProcessIdentity> {
        let pid = spawn(launch, &self.marker, server || self.all_die_with_us)?;
        // It cannot be gone entirely, since nobody but we reap it, and not before this returns.
        let identity = ProcessIdentity::of(pid)?;
        self.started.insert(pid, identity);
        if server {
            self.server = Some(ServerStatus {
                process: identity,
                exit: None,
            });
        }
        Ok(identity)
    }

    fn status(&self) -> io::Result<KeeperStatus> {
        Ok(KeeperStatus {
            keeper: self.own,
            server: self.server,
            descendants: process::descendants(self.own.pid)?
                .iter()
                .map(Stat::identity)
                .collect(),
        })
    }

    /// Collects everything that has ended, ours and adopted, and tells of ours.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_pid() as u32;
            let Some(exit) = exit_of(status) else {
                continue;
            };
            if self.started.remove(&pid).is_none() {
                continue;
            }
            let is_server = match &mut self.server {
                Some(server) if server.process.pid == pid && server.exit.is_none() => {
                    server.exit = Some(exit);
                    true
                }
                _ => false,
            };
            for index in 0..self.connections.len() {
                self.send(
                    index,
                    &KeeperLine::Exited {
                        pid,
                        server: is_server,
                        exit,
                    },
                );
            }
        }
    }

    /// Ends the tree, the display server last, so that applications can save what they show.
    fn end(&mut self, grace: Duration) -> Vec<ProcessIdentity> {
        let server = self
            .server
            .filter(|server| server.exit.is_none())
            .map(|server| server.process);
        let survivors = end_below(self.own.pid, server, grace, |pause| {
            // Woken early by the end of a child.
            let mut fds = [PollFd::from_borrowed_fd(
                self.signals.as_fd(),
                PollFlags::IN,
            )];
            let _ = poll(
                &mut fds,
                Some(&Timespec {
                    tv_sec: 0,
                    tv_nsec: i64::from(pause.subsec_nanos()),
                }),
            );
            self.signals.drain();
            while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        });
        self.reap();
        if let Some(group) = self.group.take() {
            group.leave();
        }
        survivors
    }

    fn answer(&mut self, index: usize, id: u64, result: io::Result<impl Serialize>) {
        match result {
            Ok(value) => self.reply(index, id, &value),
            Err(error) => self.send(
                index,
                &KeeperLine::Failed {
                    id,
                    reason: error.to_string(),
                },
            ),
        }
    }

    fn reply(&mut self, index: usize, id: u64, value: &impl Serialize) {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        self.send(index, &KeeperLine::Done { id, value });
    }

    /// Writes a line whole or gives the connection up: a host that lets the socket's buffer run full
    /// is stopped or broken, and comes back by a new connection.
    fn send(&mut self, index: usize, line: &KeeperLine) {
        let Ok(mut bytes) = serde_json::to_vec(line) else {
            return;
        };
        bytes.push(b'\n');
        let connection = &mut self.connections[index];
        if !connection.closed && connection.stream.write_all(&bytes).is_err() {
            connection.closed = true;
        }
    }
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    if let Some(code) = status.exit_status() {
        return Some(Exit::Code(code));
    }
    status.terminating_signal().map(Exit::Signal)
}
