//! One viewer: moves the bytes of RFB between a browser and the gate.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use handover_protocol::client::CONNECT_TIMEOUT;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message};

use super::grant::Grant;
use super::live::{PING, SILENT};
use super::state::Console;

/// The longest message of a browser, in bytes: a clipboard's text and then some.
pub const MAX_MESSAGE: usize = 16 << 20;
/// Bytes of the picture that are read at once, and so the longest message to a browser.
const READ_BYTES: usize = 64 << 10;
/// How long either side may take for one piece.
const STALLED: Duration = Duration::from_secs(30);
/// How long a browser may take to read a goodbye.
const GOODBYE: Duration = Duration::from_millis(500);

/// Moves bytes between a browser and the viewer's `gate` until either side ends, the browser's time is
/// over, or the console ends.
pub async fn serve<S>(
    socket: WebSocketStream<S>,
    gate: &Path,
    grant: Arc<Grant>,
    console: Arc<Console>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut to_browser, from_browser) = socket.split();
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, UnixStream::connect(gate)).await;
    let code = match connected {
        Err(_) | Ok(Err(_)) => (CloseCode::Away, "this viewer is gone"),
        Ok(Ok(gate)) => {
            let (from_gate, to_gate) = gate.into_split();
            tokio::select! {
                () = show(from_gate, &mut to_browser) => (CloseCode::Normal, "this viewer has ended"),
                code = act(from_browser, to_gate) => code,
                () = console.over(&grant) => (CloseCode::Policy, "the time of this link is over"),
                () = console.stopped() => (CloseCode::Away, "the console has ended"),
            }
        }
    };
    let goodbye = CloseFrame {
        code: code.0,
        reason: code.1.into(),
    };
    let _ = tokio::time::timeout(GOODBYE, to_browser.send(Message::Close(Some(goodbye)))).await;
}

/// The picture, on its way to the browser.
async fn show<S>(mut gate: OwnedReadHalf, browser: &mut SplitSink<WebSocketStream<S>, Message>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut buffer = vec![0; READ_BYTES];
    let mut ping = tokio::time::interval_at(tokio::time::Instant::now() + PING, PING);
    loop {
        let message = tokio::select! {
            read = gate.read(&mut buffer) => match read {
                Ok(length @ 1..) => Message::binary(buffer[..length].to_vec()),
                Ok(0) | Err(_) => return,
            },
            _ = ping.tick() => Message::Ping(Vec::new().into()),
        };
        // While the browser does not read, the gate waits, and leaves pictures out.
        let sent = tokio::time::timeout(STALLED, browser.send(message)).await;
        if !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}

/// What the person does, on its way to the gate, which lets it through or not.
async fn act<S>(
    mut browser: SplitStream<WebSocketStream<S>>,
    mut gate: OwnedWriteHalf,
) -> (CloseCode, &'static str)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let Ok(message) = tokio::time::timeout(SILENT, browser.next()).await else {
            return (CloseCode::Away, "this browser does not answer");
        };
        match message {
            Some(Ok(Message::Binary(bytes))) => {
                let written = tokio::time::timeout(STALLED, gate.write_all(&bytes)).await;
                if !matches!(written, Ok(Ok(()))) {
                    return (CloseCode::Normal, "this viewer has ended");
                }
            }
            Some(Ok(Message::Text(_))) => return (CloseCode::Unsupported, "bytes are due"),
            // Answered by the library; after a goodbye nothing else comes.
            Some(Ok(
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) | Message::Close(_),
            )) => {}
            None => return (CloseCode::Normal, ""),
            Some(Err(_)) => return (CloseCode::Protocol, "this is no message"),
        }
    }
}

#[cfg(test)]
mod tests {
    use handover_host::system::clock;
    use handover_protocol::Timestamp;
    use tokio::net::UnixListener;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;
    use crate::console::grant::Until;
    use crate::console::origin::Names;
    use crate::console::scope::Scope;

    /// Far longer than anything here takes.
    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn bytes_pass_until_the_time_of_the_link_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("view.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let names = Names::new([127, 0, 0, 1].into(), &[], false).unwrap();
        let console = Arc::new(Console::new(names, 1));
        let until = Until {
            moment: clock::now() + Duration::from_secs(2),
            shown: Timestamp(0),
        };
        let grant = Arc::new(Grant::new(Scope::All, Some(until)));
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let server = WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
        tokio::spawn(async move { serve(server, &path, grant, console).await });
        let mut browser = WebSocketStream::from_raw_socket(ours, Role::Client, None).await;
        let (mut gate, _) = listener.accept().await.unwrap();

        gate.write_all(b"picture").await.unwrap();
        let shown = browser.next().await.unwrap().unwrap();
        assert_eq!(shown, Message::binary(&b"picture"[..]));
        browser.send(Message::binary(&b"key"[..])).await.unwrap();
        let mut heard = [0; 3];
        gate.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"key");

        let ended = tokio::time::timeout(LONG, browser.next()).await.unwrap();
        let Some(Ok(Message::Close(Some(goodbye)))) = ended else {
            panic!("{ended:?}");
        };
        assert_eq!(goodbye.code, CloseCode::Policy);
        // The gate has seen the end of this viewer.
        assert_eq!(gate.read(&mut heard).await.unwrap(), 0);
    }
}
