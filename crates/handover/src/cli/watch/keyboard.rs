//! Lines that the person types at the terminal while in control.

use std::io::{self, BufRead, IsTerminal};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;

/// How often it is looked whether anybody still wants to know.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};

/// Starts to read lines from the terminal. Without a terminal there are none.
pub fn lines() -> io::Result<mpsc::UnboundedReceiver<String>> {
    let (lines, receiver) = mpsc::unbounded_channel();
    if io::stdin().is_terminal() {
        // A read cannot be given up, so it must not be in the way of the rest of the program.
        std::thread::Builder::new()
            .name("keyboard".to_owned())
            .spawn(move || read(&lines))?;
    }
    Ok(receiver)
}

fn read(lines: &mpsc::UnboundedSender<String>) {
    let stdin = io::stdin();
    while !lines.is_closed() {
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut ready, Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return,
        }
        // Reading from the background would stop the whole program, and cost the person control.
        if !in_foreground() {
            std::thread::sleep(std::time::Duration::from_millis(250));
            continue;
        }
        let mut line = String::new();
        match stdin.lock().read_line(&mut line) {
            Ok(1..) if lines.send(line.trim().to_owned()).is_ok() => {}
            _ => return,
        }
    }
}

fn in_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}
