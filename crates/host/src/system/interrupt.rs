//! An interrupt that ends the process with a status.

use std::io;
use std::ptr;

/// Ends the process with status 130 when it is interrupted (`SIGINT`, Ctrl-C), instead of by the signal, which only a
/// shell shows as that status. Where interrupts are ignored, as in what a shell runs in the background, they stay ignored,
/// and whoever catches them later (as tokio does) has them alone. Programs that are started have the default again.
pub fn end_with_status() -> io::Result<()> {
    let handler = end as extern "C" fn(libc::c_int);
    // SAFETY: `sigaction` is fully initialised where it is read (zero is valid for every field, among them an empty
    // mask); the old one is written by the kernel. The handler has the signature of a plain handler and calls only
    // async-signal-safe functions.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGINT, ptr::null(), &mut action) != 0 {
            return Err(io::Error::last_os_error());
        }
        if action.sa_sigaction == libc::SIG_IGN {
            return Ok(());
        }
        action = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        if libc::sigaction(libc::SIGINT, &action, ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

extern "C" fn end(number: libc::c_int) {
    let own = end as extern "C" fn(libc::c_int);
    // SAFETY: as above; `sigaction` and `_exit` are async-signal-safe. A handler that was installed later may call the one
    // before it, which is this one: then the signal is not ours.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let known = libc::sigaction(number, ptr::null(), &mut action) == 0;
        if known && action.sa_sigaction == own as usize {
            libc::_exit(128 + number);
        }
    }
}
