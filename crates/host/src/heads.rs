//! The head of the record, told to the system journal.
//!
//! Whoever can change the record's file can cut it short and leave a chain that is whole. A head that
//! was written elsewhere shows it: `handover verify --head`.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use handover_protocol::SessionId;
use handover_store::Store;

/// Where systemd's journal listens.
const JOURNAL: &str = "/run/systemd/journal/socket";

/// How often a head that has changed is told.
const EVERY: Duration = Duration::from_secs(60);

/// Tells the journal the head of `store` now and then, for as long as this is polled. Ends at once
/// where there is no journal.
pub async fn follow(store: Store, session: SessionId) {
    let mut told = 0;
    while Path::new(JOURNAL).exists() {
        let seq = store.last_seq();
        if seq != told {
            tell(&store, &session);
            told = seq;
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Tells the journal the head of `store`, as at the end of a session. Does not wait, and does nothing
/// where there is no journal.
pub fn tell(store: &Store, session: &SessionId) {
    if let Err(error) = send(Path::new(JOURNAL), session, store.last_seq(), &store.head()) {
        tracing::debug!(%error, "the system journal does not take the record's head");
    }
}

fn send(socket: &Path, session: &SessionId, seq: u64, head: &str) -> io::Result<()> {
    let sender = UnixDatagram::unbound()?;
    sender.set_nonblocking(true)?;
    // None of the values can hold a line break, which would begin another field.
    let entry = format!(
        "PRIORITY=6\nSYSLOG_IDENTIFIER=handover\nHANDOVER_SESSION={session}\nHANDOVER_SEQ={seq}\n\
         HANDOVER_HEAD={head}\nMESSAGE=session {session}: head {head} at event {seq}\n"
    );
    sender.send_to(entry.as_bytes(), socket)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_is_one_datagram_of_fields() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let journal = UnixDatagram::bind(&path).unwrap();
        send(&path, &"s1".into(), 7, "abc").unwrap();
        let mut buffer = [0; 1024];
        let count = journal.recv(&mut buffer).unwrap();
        let text = std::str::from_utf8(&buffer[..count]).unwrap();
        assert!(text.lines().all(|line| line.contains('=')) && text.ends_with('\n'));
        assert!(text.contains("\nHANDOVER_HEAD=abc\nMESSAGE=session s1: head abc at event 7\n"));
        assert!(send(&dir.path().join("none"), &"s1".into(), 1, "x").is_err());
    }
}
