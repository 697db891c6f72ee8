//! What is typed and clicked at the terminal.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{self, Event};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use tokio::sync::mpsc;

/// Events that wait to be dealt with; beyond, the terminal has to wait.
const WAITING: usize = 256;

/// How long is waited for more once something was read.
const REST: Duration = Duration::from_millis(20);

/// So often nothing must have come before it is certain that nothing is held back: the reader may have
/// run out of its time before it looked.
const QUIET: u32 = 3;

/// How long the reading may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// The terminal's input, for as long as it is wanted. Reading is on a thread of its own, which sleeps
/// while nothing is typed, and never reads what another program at the same terminal is to get.
#[derive(Debug)]
pub struct Keyboard {
    events: mpsc::Receiver<Event>,
    end: Arc<End>,
}

/// Tells the thread to end.
#[derive(Debug)]
struct End {
    wanted: AtomicBool,
    wake: OwnedFd,
}

impl Keyboard {
    /// Starts to read.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start() -> io::Result<Self> {
        let (sender, events) = mpsc::channel(WAITING);
        let end = Arc::new(End {
            wanted: AtomicBool::new(false),
            wake: eventfd(0, EventfdFlags::CLOEXEC)?,
        });
        let ends = Arc::clone(&end);
        std::thread::Builder::new()
            .name("keyboard".to_owned())
            .spawn(move || read(&sender, &ends))?;
        Ok(Self { events, end })
    }

    /// The next event; `None` when the terminal is gone.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Ends the reading and waits until it has ended: what is typed from then on is for others.
    pub async fn stop(mut self) {
        self.end.tell();
        // The thread has the only sender. (A channel that is closed here would seem empty before that.)
        let ended = async { while self.events.recv().await.is_some() {} };
        let _ = tokio::time::timeout(ENDS_WITHIN, ended).await;
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.end.tell();
    }
}

impl End {
    fn tell(&self) {
        self.wanted.store(true, Ordering::SeqCst);
        // It cannot be full: it is written to at most twice.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst)
    }
}

fn read(events: &mpsc::Sender<Event>, end: &End) {
    let stdin = io::stdin();
    while !end.is_wanted() {
        let mut ready = [
            PollFd::new(&stdin, PollFlags::IN),
            PollFd::new(&end.wake, PollFlags::IN),
        ];
        match poll(&mut ready, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        }
        let [input, woken] = [ready[0].revents(), ready[1].revents()];
        if !woken.is_empty() || input.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
        {
            return;
        }
        let mut quiet = 0;
        while quiet < QUIET && !end.is_wanted() {
            match event::poll(REST) {
                Ok(true) => quiet = 0,
                Ok(false) => {
                    quiet += 1;
                    continue;
                }
                Err(_) => return,
            }
            let Ok(event) = event::read() else { return };
            if events.blocking_send(event).is_err() {
                return;
            }
        }
    }
}
