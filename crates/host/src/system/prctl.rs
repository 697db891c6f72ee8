//! What a process says about itself to the kernel.

use std::io;

use rustix::process::{
    DumpableBehavior, Signal, getpid, getppid, set_child_subreaper, set_dumpable_behavior,
    set_parent_process_death_signal,
};

/// Makes this process the parent of every orphan below it, so that a double fork cannot leave its
/// tree. Lasts until the process ends; not inherited by children.
pub fn become_subreaper() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Closes this process to `ptrace`, core dumps and `/proc/PID/mem` by processes of the same user
/// (root excepted). Reset by the kernel at the next `exec`.
pub fn forbid_dumps() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Asks the kernel to send `signal` to this process when the thread that started it ends. Kept over
/// `exec`, cleared in children. Safe to call between `fork` and `exec`: two system calls, no
/// allocation.
///
/// `parent` is the pid of the process that forked: if it is already gone, the signal would never
/// come, so this fails with `ESRCH` instead.
pub fn die_with_parent(parent: u32, signal: Signal) -> io::Result<()> {
    set_parent_process_death_signal(Some(signal))?;
    let present = getppid().map_or(0, |pid| pid.as_raw_pid() as u32);
    if present != parent {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}
