//! From a request to a WebSocket.

use std::future::Future;

use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::pages;

/// A WebSocket to a browser.
pub type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Memory for reading and writing, per WebSocket, in bytes.
const BUFFER: usize = 16 << 10;

/// Whether a request asks for another protocol than HTTP.
pub fn is_asked(headers: &HeaderMap) -> bool {
    headers.contains_key(header::UPGRADE) || headers.contains_key(header::SEC_WEBSOCKET_KEY)
}

/// Answers `request` and lets `serve` have the WebSocket, whose messages may have `longest` bytes.
/// Of `protocols` that the browser offers, `protocol` is taken.
pub fn accept<F, Served>(mut request: Request, protocol: &str, longest: usize, serve: F) -> Response
where
    F: FnOnce(Socket) -> Served + Send + 'static,
    Served: Future<Output = ()> + Send,
{
    let headers = request.headers();
    let key = match accept_key(request.method(), headers) {
        Ok(key) => key,
        Err(bad) => return bad.answer(),
    };
    let offered = words(headers, &header::SEC_WEBSOCKET_PROTOCOL).any(|word| word == protocol);
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        // Or the connection has ended meanwhile.
        if let Ok(upgraded) = upgraded.await {
            let config = WebSocketConfig::default()
                .read_buffer_size(BUFFER)
                .write_buffer_size(BUFFER)
                .max_message_size(Some(longest))
                .max_frame_size(Some(longest));
            let io = TokioIo::new(upgraded);
            serve(WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await).await;
        }
    });
    let mut answer = StatusCode::SWITCHING_PROTOCOLS.into_response();
    let headers = answer.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, key);
    if let Some(protocol) = HeaderValue::from_str(protocol).ok().filter(|_| offered) {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    answer
}

/// Why a handshake is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bad {
    Request,
    Version,
    Key,
}

impl Bad {
    fn answer(self) -> Response {
        let refused = |sentence| pages::refusal(StatusCode::BAD_REQUEST, sentence);
        match self {
            Self::Request => refused("this is for a WebSocket"),
            Self::Key => refused("this is no key of a WebSocket"),
            Self::Version => {
                let sentence = "version 13 is spoken here";
                let refused = pages::refusal(StatusCode::UPGRADE_REQUIRED, sentence);
                ([(header::SEC_WEBSOCKET_VERSION, "13")], refused).into_response()
            }
        }
    }
}

/// The answer to the key of a handshake that is as RFC 6455 wants it.
fn accept_key(method: &Method, headers: &HeaderMap) -> Result<HeaderValue, Bad> {
    let is = |name: &HeaderName, wanted: &str| {
        words(headers, name).any(|word| word.eq_ignore_ascii_case(wanted))
    };
    let upgrades = is(&header::UPGRADE, "websocket") && is(&header::CONNECTION, "upgrade");
    if method != Method::GET || !upgrades {
        return Err(Bad::Request);
    }
    if !is(&header::SEC_WEBSOCKET_VERSION, "13") {
        return Err(Bad::Version);
    }
    let key = headers
        .get(header::SEC_WEBSOCKET_KEY)
        .map(HeaderValue::as_bytes);
    let key = key.filter(|key| STANDARD.decode(key).is_ok_and(|key| key.len() == 16));
    key.and_then(|key| HeaderValue::from_str(&derive_accept_key(key)).ok())
        .ok_or(Bad::Key)
}

/// The words of a list that a header may hold.
fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(fields: &[(&'static str, &'static str)]) -> Result<HeaderValue, Bad> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        accept_key(&Method::GET, &headers)
    }

    #[test]
    fn handshakes() {
        let key = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        let version = ("sec-websocket-version", "13");
        let upgrade = ("upgrade", "WebSocket");
        let connection = ("connection", "keep-alive, Upgrade");
        // The example of RFC 6455.
        let accepted = asked(&[key, version, upgrade, connection]).unwrap();
        assert_eq!(accepted, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let bad = Err(Bad::Request);
        assert_eq!(asked(&[key, version, upgrade]), bad);
        assert_eq!(asked(&[key, version, connection]), bad);
        assert_eq!(asked(&[version, upgrade, connection]), Err(Bad::Key));
        let short = ("sec-websocket-key", "dGhl");
        assert_eq!(asked(&[short, version, upgrade, connection]), Err(Bad::Key));
        let old = ("sec-websocket-version", "8");
        assert_eq!(asked(&[key, old, upgrade, connection]), Err(Bad::Version));
    }
}
