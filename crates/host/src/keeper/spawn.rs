//! Starting programs below the keeper.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Signal;

use super::wire::{Fifos, Launch, MARKER};
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
    // SAFETY: between fork and exec the closure makes only system calls (setsid, prctl, getppid):
    // nothing that allocates or takes a lock.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            if dies_with_us {
                prctl::die_with_parent(keeper, Signal::KILL)?;
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
        open_fifo(&fifos.stdin, OpenOptions::new().read(true))?,
        open_fifo(&fifos.stdout, OpenOptions::new().write(true))?,
        open_fifo(&fifos.stderr, OpenOptions::new().write(true))?,
    ])
}

/// Opens a FIFO without waiting for its other end: a host that has died meanwhile must not hold the
/// keeper up. The program gets it blocking, as programs expect of their standard streams.
fn open_fifo(path: &Path, how: &mut OpenOptions) -> io::Result<Stdio> {
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
    Ok(File::into(file))
}
