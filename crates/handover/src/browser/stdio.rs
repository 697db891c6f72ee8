//! The DevTools connection on standard input and output.

use std::io;

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

/// Moves messages both ways, one a line, until either side ends.
///
/// # Errors
/// Either side failed.
pub async fn bridge(host: UnixStream) -> io::Result<()> {
    let (mut from_host, mut to_host) = host.into_split();
    let (mut stdin, mut stdout) = (tokio::io::stdin(), tokio::io::stdout());
    let commands = tokio::io::copy(&mut stdin, &mut to_host);
    let answers = async {
        tokio::io::copy(&mut from_host, &mut stdout).await?;
        stdout.flush().await
    };
    tokio::select! {
        ended = commands => ended.map(drop),
        ended = answers => ended,
    }
}
