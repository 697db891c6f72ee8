//! The keeper: a small process that is parent and subreaper of one tree, so that nothing below it
//! can get lost and a crash of the host loses no desktop.
//!
//! It has one thread and no async runtime, holds no state worth losing, and does two things by itself.
//! When no host has been connected for its orphan timeout, it ends its tree and itself; with a timeout
//! of zero that is at once, which is what an agent's keeper does. And when a host has died, it lets go
//! of the mouse buttons that the host held ([`let_go`]).

pub mod client;
mod leftovers;
mod let_go;
pub mod pipes;
mod serve;
mod spawn;
mod tree;
pub mod wire;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::system::cgroup::Cgroup;
use crate::system::process::{self, Stat};
use crate::system::{prctl, signals::SignalPipe, socket};

/// What a keeper is told on its command line, where `ps` and callers' lineage find it too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub session: String,
    pub owner: Owner,
    pub socket: PathBuf,
    pub orphan_timeout: Duration,
}

/// Whose tree it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A desktop's: display server and applications.
    Desktop(String),
    /// An agent's.
    Agent(String),
    /// A relayed server's; it belongs to whoever the relay belongs to.
    Relay(String),
}

/// The hidden subcommand, and with it the mark by which a keeper is known in a list of processes.
pub const SUBCOMMAND: &str = "keeper";

impl Arguments {
    /// `--session S (--desktop D | --agent A | --relay R) --socket PATH --orphan-timeout-ms N`
    pub(crate) fn to_args(&self) -> Vec<OsString> {
        let (flag, id) = match &self.owner {
            Owner::Desktop(id) => ("--desktop", id),
            Owner::Agent(id) => ("--agent", id),
            Owner::Relay(id) => ("--relay", id),
        };
        vec![
            "--session".into(),
            self.session.clone().into(),
            flag.into(),
            id.into(),
            "--socket".into(),
            self.socket.clone().into(),
            "--orphan-timeout-ms".into(),
            self.orphan_timeout.as_millis().to_string().into(),
        ]
    }

    pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let (mut session, mut owner, mut socket, mut timeout) = (None, None, None, None);
        let mut args = args.into_iter();
        while let Some(flag) = args.next() {
            let value = args
                .next()
                .ok_or_else(|| format!("{} needs a value", flag.display()))?;
            let text = || {
                value
                    .clone()
                    .into_string()
                    .map_err(|_| format!("the value of {} is not UTF-8", flag.display()))
            };
            match flag.to_str() {
                Some("--session") => session = Some(text()?),
                Some("--desktop") => owner = Some(Owner::Desktop(text()?)),
                Some("--agent") => owner = Some(Owner::Agent(text()?)),
                Some("--relay") => owner = Some(Owner::Relay(text()?)),
                Some("--socket") => socket = Some(PathBuf::from(value)),
                Some("--orphan-timeout-ms") => {
                    let millis = text()?
                        .parse()
                        .map_err(|_| "--orphan-timeout-ms needs a number".to_owned())?;
                    timeout = Some(Duration::from_millis(millis));
                }
                _ => return Err(format!("unknown option {}", flag.display())),
            }
        }
        Ok(Self {
            session: session.ok_or("--session is missing")?,
            owner: owner.ok_or("--desktop, --agent or --relay is missing")?,
            socket: socket.ok_or("--socket is missing")?,
            orphan_timeout: timeout.ok_or("--orphan-timeout-ms is missing")?,
        })
    }
}

/// The kernel's name for a keeper's process.
const NAME: &std::ffi::CStr = c"handover-keeper";

/// Whose tree a process keeps, if it is a keeper. A program can pretend to be one, by which it and all
/// below it only lose power.
pub(crate) fn kept_by(stat: &Stat) -> Option<Owner> {
    if stat.name.as_bytes() != NAME.to_bytes() {
        return None;
    }
    let line = process::command_line(stat.pid).ok()?;
    let begin = line.iter().position(|word| word == "--session")?;
    let arguments = line.into_iter().skip(begin).map(OsString::from);
    Some(Arguments::parse(arguments).ok()?.owner)
}

/// Whether a process was started below a keeper, living or not, and has not cleared its environment.
pub(crate) fn carries_marker(stat: &Stat) -> bool {
    process::environ(stat.pid)
        .is_ok_and(|environ| environ.iter().any(|(name, _)| name == wire::MARKER))
}

/// The keeper's entry: `handover keeper …`, everything after the word `keeper`. Writes `ready` and a
/// newline to its standard output when it listens, and from then on only to its standard error.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::parse(args) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("handover keeper: {problem}");
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("handover keeper: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<()> {
    // An inherited descriptor, such as the pipe of whoever runs the host, would be held open for as
    // long as the desktop lives.
    close_inherited();
    // The kernel would otherwise call it `exe`, after the link by which it was started.
    rustix::thread::set_name(NAME)?;
    // Asked of /proc: the number of a session that began outside of this pid namespace is 0, which
    // the calls for it cannot answer.
    let own = Stat::of(std::process::id())?;
    if own.session != own.pid {
        rustix::process::setsid()?;
    }
    prctl::become_subreaper()?;
    prctl::forbid_dumps()?;
    let signals = SignalPipe::install()?;
    let group = Cgroup::enter(own.identity());
    let listener = socket::bind_private(&arguments.socket).map_err(io::Error::other)?;
    announce_ready()?;
    serve::serve(&listener, &signals, arguments, group)
}

fn close_inherited() {
    // SAFETY: this runs before the process has opened anything of its own, so no Rust value owns any
    // of these descriptors.
    unsafe {
        libc::close_range(3, u32::MAX, 0);
    }
}

fn announce_ready() -> io::Result<()> {
    let null = std::fs::File::options().write(true).open("/dev/null")?;
    rustix::io::write(rustix::stdio::stdout(), b"ready\n")?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_read_back() {
        for owner in [
            Owner::Desktop("d1".into()),
            Owner::Agent("k7m2p4".into()),
            Owner::Relay("0a1b2c".into()),
        ] {
            let arguments = Arguments {
                session: "abc".into(),
                owner,
                socket: "/run/x y".into(),
                orphan_timeout: Duration::from_secs(3600),
            };
            assert_eq!(Arguments::parse(arguments.to_args()), Ok(arguments));
        }
        assert!(Arguments::parse(["--session".into()]).is_err());
        assert!(Arguments::parse(["--colour".into(), "red".into()]).is_err());
    }
}
