//! Starting programs below the keeper.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Signal;

use super::wire::{ChannelFifos, Fifos, Launch, MARKER};
use crate::system::prctl;

/// Starts `launch` in a session of its own, with exactly its environment and `marker`; its output is
/// appended to its log and its input is empty, or all three are its FIFOs. Answers its pid: the caller
/// reaps it.
///
/// `dies_with_us`: the kernel kills it when the keeper ends, however the keeper ends. Set for the
/// display server, without which nothing on the desktop can go on, and for a relayed server; not for applications, which may
/// change their credentials and so lose the setting anyway.
pub(super) fn spawn(launch: &Launch, marker: &str, dies_with_us: bool) -> io::Result<u32> {
    let (program, arguments) = launch
        .command
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"))?;
    let [stdin, stdout, stderr] = match &launch.stdio {
        Some(fifos) => open_fifos(fifos)?,
        None => open_log(&launch.log)?,
    };
    let channel = launch.channel.as_ref().map(Channel::open).transpose()?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(&launch.cwd)
        .env_clear()
        .envs(&launch.env)
        .env(MARKER, marker)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr);
    let keeper = std::process::id();
    let ends = channel.as_ref().map(Channel::ends);
    // SAFETY: between fork and exec the closure makes only system calls (setsid, prctl, getppid, dup2):
    // nothing that allocates or takes a lock. The descriptors live in `channel` until after the spawn.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            if dies_with_us {
                prctl::die_with_parent(keeper, Signal::KILL)?;
            }
            if let Some([commands, answers]) = ends {
                place(commands, COMMANDS)?;
                place(answers, ANSWERS)?;
            }
            Ok(())
        });
    }
    // Dropping the handle neither kills nor reaps: the keeper reaps everything itself.
    match command.spawn() {
        Ok(child) => Ok(child.id()),
        Err(error) if !launch.cwd.is_dir() => Err(io::Error::new(
            error.kind(),
            format!(
                "the working directory {} does not exist",
                launch.cwd.display()
            ),
        )),
        Err(error) => Err(io::Error::new(
            error.kind(),
            format!("cannot start {program}: {error}"),
        )),
    }
}

/// The number of the descriptor that a driven program reads from.
const COMMANDS: RawFd = 3;
/// The number of the descriptor that it answers on.
const ANSWERS: RawFd = 4;

/// A driven program's ends of its two pipes, under numbers that neither is to have in the program.
struct Channel {
    commands: OwnedFd,
    answers: OwnedFd,
    /// Keep both numbers taken here: the standard library makes a pipe of its own for the spawn, which
    /// must not get one of them, since the child gives them away.
    _taken: [File; 2],
}

impl Channel {
    fn open(fifos: &ChannelFifos) -> io::Result<Self> {
        // The lowest free numbers are given first, so if 3 and 4 are free, these get them.
        let taken = [File::open("/dev/null")?, File::open("/dev/null")?];
        let commands = open_fifo(&fifos.commands, OpenOptions::new().read(true))?;
        let answers = open_fifo(&fifos.answers, OpenOptions::new().write(true))?;
        Ok(Self {
            commands: commands.into(),
            answers: answers.into(),
            _taken: taken,
        })
    }

    fn ends(&self) -> [RawFd; 2] {
        [self.commands.as_raw_fd(), self.answers.as_raw_fd()]
    }
}

/// Makes `fd` known under `number` too, and open after exec.
fn place(fd: RawFd, number: RawFd) -> io::Result<()> {
    // SAFETY: dup2 takes two numbers and touches no memory.
    if unsafe { libc::dup2(fd, number) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// An empty input, and output that is appended to `log`.
fn open_log(log: &Path) -> io::Result<[Stdio; 3]> {
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(log)?;
    Ok([Stdio::null(), log.try_clone()?.into(), log.into()])
}

/// The program's ends of its FIFOs. They are closed on exec, so no other child inherits them.
fn open_fifos(fifos: &Fifos) -> io::Result<[Stdio; 3]> {
    Ok([
        open_fifo(&fifos.stdin, OpenOptions::new().read(true))?.into(),
        open_fifo(&fifos.stdout, OpenOptions::new().write(true))?.into(),
        open_fifo(&fifos.stderr, OpenOptions::new().write(true))?.into(),
    ])
}

/// Opens a FIFO without waiting for its other end: a host that has died meanwhile must not hold the
/// keeper up. The program gets it blocking, as programs expect of their standard streams.
fn open_fifo(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    let file = how
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)
        .map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot open the pipe {}: {error}", path.display()),
            )
        })?;
    let flags = fcntl_getfl(&file)?;
    fcntl_setfl(&file, flags.difference(OFlags::NONBLOCK))?;
    Ok(file)
}
