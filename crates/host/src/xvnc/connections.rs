//! Xvnc's own account of who connects to it.
//!
//! Whoever reaches the RFB socket, and even a connection that Xvnc itself makes, appears in its log:
//! a connection that the host did not make is known by its being one too many.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::unix::AsyncFd;

/// One line of the log about connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// One was accepted.
    Accepted,
    /// One was closed.
    Closed,
}

/// Follows Xvnc's log. Every connection to its RFB socket gives [`ConnectionEvent::Accepted`] once,
/// and [`ConnectionEvent::Closed`] once when it ends, in the order in which Xvnc saw them.
#[derive(Debug)]
pub struct ConnectionLog {
    file: File,
    changes: AsyncFd<OwnedFd>,
    /// The begin of a line that is not yet written to its end.
    partial: Vec<u8>,
    /// Read but not yet given out, newest first.
    pending: Vec<ConnectionEvent>,
    open: u64,
}

/// A line of Xvnc's log is short; a longer one is none.
const MAX_LINE: usize = 64 * 1024;

impl ConnectionLog {
    /// Follows `log` from the byte `start` on. Must be called within a tokio runtime.
    pub fn open(log: &Path, start: u64) -> io::Result<Self> {
        // Watched before it is read: nothing that is written in between is missed.
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        inotify::add_watch(&watch, log, WatchFlags::MODIFY)?;
        let mut file = File::open(log)?;
        file.seek(SeekFrom::Start(start))?;
        // SAFETY: `OwnedFd` always answers the same descriptor and closes it only when it is dropped,
        // which `AsyncFd` does after it has removed it from the reactor.
        let changes = unsafe { AsyncFd::register(watch) }?;
        Ok(Self {
            file,
            changes,
            partial: Vec::new(),
            pending: Vec::new(),
            open: 0,
        })
    }

    /// The next event; waits for one. Dropping the future loses nothing.
    pub async fn next(&mut self) -> io::Result<ConnectionEvent> {
        loop {
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            let mut guard = self.changes.readable().await?;
            let mut buffer = [0u8; 4096];
            // What changed does not matter, there is only one file.
            while rustix::io::read(guard.get_inner(), &mut buffer).is_ok_and(|count| count > 0) {}
            guard.clear_ready();
        }
    }

    /// The next event that is in the log already.
    pub fn try_next(&mut self) -> io::Result<Option<ConnectionEvent>> {
        if self.pending.is_empty() {
            self.read()?;
        }
        let event = self.pending.pop();
        match event {
            Some(ConnectionEvent::Accepted) => self.open += 1,
            Some(ConnectionEvent::Closed) => self.open = self.open.saturating_sub(1),
            None => {}
        }
        Ok(event)
    }

    /// Connections that are open, by the events given out so far.
    pub fn open_connections(&self) -> u64 {
        self.open
    }

    fn read(&mut self) -> io::Result<()> {
        let mut chunk = [0u8; 8192];
        loop {
            let count = self.file.read(&mut chunk)?;
            if count == 0 {
                break;
            }
            for &byte in &chunk[..count] {
                if byte != b'\n' {
                    if self.partial.len() < MAX_LINE {
                        self.partial.push(byte);
                    }
                    continue;
                }
                if let Some(event) = event_of(&self.partial) {
                    self.pending.push(event);
                }
                self.partial.clear();
            }
        }
        self.pending.reverse();
        Ok(())
    }
}

/// ` Connections: accepted: /run/…/d1.rfb`. A long path stands on the next line, so only the begin
/// counts.
fn event_of(line: &[u8]) -> Option<ConnectionEvent> {
    let rest = line
        .trim_ascii_start()
        .strip_prefix(b"Connections:")?
        .trim_ascii_start();
    if rest.starts_with(b"accepted:") {
        Some(ConnectionEvent::Accepted)
    } else if rest.starts_with(b"closed:") {
        Some(ConnectionEvent::Closed)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// As Xvnc 1.12 writes it, the second connection with a path that is wrapped.
    const LOG: &str = "
Sun Nov 29 16:41:34 2026
 Connections: accepted: /run/user/1000/handover/k3f9x2ab/d1.rfb
 Connections: accepted:
              /run/user/1000/handover/k3f9x2abk3f9x2abk3f9x2abk3f9x2abk3f9x2abk3f9x2ab/d1.rfb
 VNCSConnST:  closing /run/user/1000/handover/k3f9x2ab/d1.rfb: read: Connection
              reset by peer (104)
 EncodeManager: Framebuffer updates: 0
 Connections: closed: /run/user/1000/handover/k3f9x2ab/d1.rfb
 SConnection: Client needs protocol version 3.8
";

    #[tokio::test]
    async fn one_event_a_connection_however_the_lines_arrive() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d1-xvnc.log");
        let before = " Connections: accepted: of an earlier Xvnc\n";
        std::fs::write(&path, before).unwrap();
        let mut log = ConnectionLog::open(&path, before.len() as u64).unwrap();
        assert_eq!(log.try_next().unwrap(), None);

        let writer = path.clone();
        let task = tokio::task::spawn_blocking(move || {
            let mut file = File::options().append(true).open(writer).unwrap();
            // Byte by byte: a line counts when it is whole.
            for byte in LOG.as_bytes() {
                file.write_all(&[*byte]).unwrap();
            }
        });
        let mut events = Vec::new();
        for _ in 0..3 {
            events.push(log.next().await.unwrap());
        }
        task.await.unwrap();
        assert_eq!(
            events,
            [
                ConnectionEvent::Accepted,
                ConnectionEvent::Accepted,
                ConnectionEvent::Closed
            ]
        );
        assert_eq!(log.open_connections(), 1);
        assert_eq!(log.try_next().unwrap(), None);
    }
}
