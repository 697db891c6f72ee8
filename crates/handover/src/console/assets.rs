//! The files of the app, which are part of the program. They are kept as they are sent, compressed.

use std::io::Read;

use axum::http::header::{self, HeaderMap};
use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;

/// One file.
#[derive(Debug)]
pub struct Asset {
    /// Its path on the server, from the root.
    pub path: &'static str,
    /// Its media type.
    pub kind: &'static str,
    /// Its contents, by gzip.
    pub gzip: &'static [u8],
}

// `APP: &[Asset]`, written by `build.rs`.
include!(concat!(env!("OUT_DIR"), "/console.rs"));

/// Whether the program was built with the app.
pub fn is_there() -> bool {
    find("/").is_some()
}

/// The file at `path`.
pub fn find(path: &str) -> Option<&'static Asset> {
    let path = if path == "/" { "/index.html" } else { path };
    APP.iter().find(|asset| asset.path == path)
}

impl Asset {
    /// Whether its name changes with its contents, so that it can be kept for ever.
    fn is_named_after_contents(&self) -> bool {
        self.path.starts_with("/assets/")
    }

    /// The answer to a request with `headers`.
    pub fn answer(&self, headers: &HeaderMap) -> Response {
        let mut answer = if takes_gzip(headers) {
            ([(header::CONTENT_ENCODING, "gzip")], self.gzip).into_response()
        } else {
            let mut whole = Vec::new();
            // It was compressed by us, and memory is read without errors.
            let _ = GzDecoder::new(self.gzip).read_to_end(&mut whole);
            whole.into_response()
        };
        let headers = answer.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            header::HeaderValue::from_static(self.kind),
        );
        headers.insert(
            header::VARY,
            header::HeaderValue::from_static("accept-encoding"),
        );
        if self.is_named_after_contents() {
            let forever = header::HeaderValue::from_static("private, max-age=31536000, immutable");
            headers.insert(header::CACHE_CONTROL, forever);
        }
        answer
    }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).into_iter();
    let mut codings = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|v| v.split(','));
    codings.any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let never = weight
            .trim()
            .strip_prefix("q=")
            .is_some_and(|weight| weight.parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !never
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codings() {
        let takes = |accepted: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(
                header::ACCEPT_ENCODING,
                header::HeaderValue::from_static(accepted),
            );
            takes_gzip(&headers)
        };
        assert!(takes("gzip, deflate, br, zstd"));
        assert!(takes("br;q=1.0, GZIP;q=0.8"));
        assert!(!takes("gzip;q=0"));
        assert!(!takes("gzip; q=0.000"));
        assert!(!takes("identity"));
        assert!(!takes(""));
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
