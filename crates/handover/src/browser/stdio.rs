//! The DevTools connection on standard input and output.

use std::io;

use rustix::event::PollFlags;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;

use super::ended;
use crate::streams::{hang_up, patiently, thread};

/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;
/// Reads ahead.
const AHEAD: usize = 2;

/// Moves messages both ways, one a line. When the input ends the answers that are due are still written;
/// when nobody reads them, it is over.
///
/// # Errors
/// Either side failed, or the host ended first.
pub async fn bridge(host: UnixStream) -> io::Result<()> {
    let (mut from_host, to_host) = host.into_split();
    let mut stdout = tokio::io::stdout();
    let (input, gone) = (input()?, hang_up()?);
    let commands = commands(input, to_host);
    let answers = async {
        tokio::io::copy(&mut from_host, &mut stdout).await?;
        stdout.flush().await
    };
    tokio::pin!(answers);
    let both = async {
        tokio::select! {
            sent = commands => sent?,
            answered = &mut answers => return answered.and(Err(ended())),
        }
        answers.await
    };
    tokio::select! {
        over = both => over,
        _ = gone => Ok(()),
    }
}

/// Passes on what is read, and that it has ended.
async fn commands(
    mut input: mpsc::Receiver<io::Result<Vec<u8>>>,
    mut to_host: OwnedWriteHalf,
) -> io::Result<()> {
    while let Some(read) = input.recv().await {
        to_host.write_all(&read?).await.map_err(|_| ended())?;
    }
    to_host.shutdown().await.map_err(|_| ended())
}

/// Reads standard input. On a thread that nobody waits for, since a read ends when it pleases.
fn input() -> io::Result<mpsc::Receiver<io::Result<Vec<u8>>>> {
    let (bytes, arriving) = mpsc::channel(AHEAD);
    let read = move || {
        loop {
            let mut buffer = vec![0; READ_BYTES];
            let stdin = rustix::stdio::stdin();
            let read = patiently(stdin, PollFlags::IN, || {
                rustix::io::read(stdin, &mut buffer)
            });
            let read = match read {
                Ok(0) => return,
                Ok(read) => {
                    buffer.truncate(read);
                    Ok(buffer)
                }
                Err(error) => Err(error),
            };
            let failed = read.is_err();
            if bytes.blocking_send(read).is_err() || failed {
                return;
            }
        }
    };
    thread("input", read)?;
    Ok(arriving)
}
