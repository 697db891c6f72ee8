//! X displays by number: which are free, whether one answers, and what a dead server leaves.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::system::creds;

/// Numbers we choose from: above those that people and login managers use.
const FIRST: u32 = 100;
const COUNT: u32 = 900;

/// A number that no server seems to use. Only a guess: two who guess the same find out when Xvnc
/// claims it. Random, since many desktops may be started at once.
pub(super) fn pick_free() -> u32 {
    let mut random = [0u8; 4];
    // Without randomness the search merely starts at the first number.
    let _ = getrandom::fill(&mut random);
    let start = u32::from_ne_bytes(random) % COUNT;
    (0..COUNT)
        .map(|step| FIRST + (start + step) % COUNT)
        .find(|&number| !lock_path(number).exists() && !socket_path(number).exists())
        .unwrap_or(FIRST + start)
}

fn lock_path(number: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/.X{number}-lock"))
}

fn socket_path(number: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/.X11-unix/X{number}"))
}

/// Whether process `server` listens on this display and answers an X client's greeting: then it has
/// initialised everything, its RFB socket included. The greeting carries no cookie, so the answer is a
/// refusal, which is as good.
pub(super) async fn answers(number: u32, server: u32) -> bool {
    let greet = async {
        let mut stream = UnixStream::connect(socket_path(number)).await?;
        if creds::peer(stream.as_fd())?.pid != server {
            return Err(io::Error::from(io::ErrorKind::AddrInUse));
        }
        // Little-endian, protocol 11.0, no authorisation.
        stream
            .write_all(&[b'l', 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0])
            .await?;
        stream.read_u8().await
    };
    greet.await.is_ok()
}

/// Whether the log says from `start` on that the display's number was taken by another server.
pub(super) fn was_taken(log: &Path, start: u64) -> bool {
    let text = read_from(log, start);
    text.contains("Server is already active for display") || text.contains("server already running")
}

/// The last lines of a log from `start` on, for an error message.
pub(crate) fn tail(log: &Path, start: u64) -> String {
    const LINES: usize = 12;
    let text = read_from(log, start);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    if lines.is_empty() {
        return "(nothing)".to_owned();
    }
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

fn read_from(log: &Path, start: u64) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned()
}

/// Removes a display's lock and socket if the lock names `server`, which has ended.
pub(super) fn remove_traces(number: u32, server: u32) -> io::Result<()> {
    let lock = lock_path(number);
    let is_ours = std::fs::read_to_string(&lock)
        .is_ok_and(|text| text.trim().parse::<u32>().is_ok_and(|pid| pid == server));
    if !is_ours {
        return Ok(());
    }
    // The socket first: as long as the lock is there, no other server takes the number.
    for path in [socket_path(number), lock] {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
