//! The listening socket and its connections, each with bounds.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use super::state::Console;

/// The port that is tried first if none is asked for.
pub const PORT: u16 = 7468;
/// Most connections that have not become WebSockets.
const MAX_CONNECTIONS: usize = 256;
/// How long a client may take for the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long it may take to agree on TLS.
const TLS_WITHIN: Duration = Duration::from_secs(10);
/// The longest head of a request, in bytes.
const MAX_HEAD: usize = 16 << 10;
/// Most fields in it.
const MAX_FIELDS: usize = 64;
/// How long to wait when no connection can be accepted, as when no file can be opened.
const AGAIN: Duration = Duration::from_millis(100);

/// Listens on `port` of `address`; if none is asked for, on the usual one or else any that is free.
///
/// # Errors
/// The port is taken, or the address is not one of this machine.
pub async fn listen(address: IpAddr, port: Option<u16>) -> io::Result<TcpListener> {
    match port {
        Some(port) => TcpListener::bind((address, port)).await,
        None => match TcpListener::bind((address, PORT)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                TcpListener::bind((address, 0)).await
            }
            bound => bound,
        },
    }
}

/// Serves until the console stops.
pub async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    routes: Router,
    console: Arc<Console>,
) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let stopped = console.stopped();
    tokio::pin!(stopped);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &room) => accepted,
            () = &mut stopped => return,
        };
        match accepted {
            Ok((stream, room)) => {
                let (tls, routes, console) = (tls.clone(), routes.clone(), Arc::clone(&console));
                tokio::spawn(async move {
                    talk(stream, tls, routes, &console).await;
                    drop(room);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// The next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let room = Arc::clone(room)
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // Small messages, each waited for.
    stream.set_nodelay(true)?;
    Ok((stream, room))
}

async fn talk(stream: TcpStream, tls: Option<TlsAcceptor>, routes: Router, console: &Console) {
    let Some(tls) = tls else {
        return answer(stream, routes, console).await;
    };
    // Who does not speak TLS, or is too slow, is not answered.
    if let Ok(Ok(stream)) = tokio::time::timeout(TLS_WITHIN, tls.accept(stream)).await {
        answer(stream, routes, console).await;
    }
}

async fn answer<S>(stream: S, routes: Router, console: &Console)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_header_size(MAX_HEAD)
        .max_headers(MAX_FIELDS)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes))
        .with_upgrades();
    tokio::pin!(connection);
    tokio::select! {
        // What goes wrong with a connection is its client's affair.
        _ = &mut connection => {}
        () = console.stopped() => {}
    }
}

/// What stands before the path in links. A name is better where a certificate is for it, or the address
/// is not this machine's alone.
pub fn base(scheme: &str, name: Option<&str>, address: SocketAddr) -> String {
    let local = address.ip().is_loopback() && scheme == "http";
    match name.filter(|_| !local) {
        Some(name) => match name.parse() {
            Ok(ip) => format!("{scheme}://{}", SocketAddr::new(ip, address.port())),
            Err(_) => format!("{scheme}://{name}:{}", address.port()),
        },
        // An address that stands for all of them is none that a browser can go to.
        None if address.ip().is_unspecified() => {
            format!("{scheme}://localhost:{}", address.port())
        }
        None => format!("{scheme}://{address}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases() {
        let base = |name, address: &str| base("http", name, address.parse().unwrap());
        assert_eq!(base(None, "127.0.0.1:7468"), "http://127.0.0.1:7468");
        assert_eq!(base(None, "[::1]:7468"), "http://[::1]:7468");
        assert_eq!(base(None, "0.0.0.0:80"), "http://localhost:80");
        let name = Some("desk.example");
        assert_eq!(base(name, "[::]:7468"), "http://desk.example:7468");
        assert_eq!(base(name, "127.0.0.1:80"), "http://127.0.0.1:80");
        assert_eq!(base(Some("fd00::7"), "[::]:80"), "http://[fd00::7]:80");
        let own = super::base("https", name, "127.0.0.1:7468".parse().unwrap());
        assert_eq!(own, "https://desk.example:7468");
    }

    #[tokio::test]
    async fn a_port_that_is_taken() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let first = listen(loopback, Some(0)).await.unwrap();
        let port = first.local_addr().unwrap().port();
        let error = listen(loopback, Some(port)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
