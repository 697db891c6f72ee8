//! Starting programs below the keeper.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::wire::{Launch, MARKER};
use crate::system::prctl;
use rustix::process::Signal;

/// Starts `launch` in a session of its own, with exactly its environment and `marker`; its output is
/// appended to its log, its input is empty. Answers its pid: the caller reaps it.
///
/// `dies_with_us`: the kernel kills it when the keeper ends, however the keeper ends. Set for the
/// display server, without which nothing on the desktop can go on; not for applications, which may
/// change their credentials and so lose the setting anyway.
pub(super) fn spawn(launch: &Launch, marker: &str, dies_with_us: bool) -> io::Result<u32> {
    let (program, arguments) = launch
        .command
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"))?;
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&launch.log)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(&launch.cwd)
        .env_clear()
        .envs(&launch.env)
        .env(MARKER, marker)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
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
