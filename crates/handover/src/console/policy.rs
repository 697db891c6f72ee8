//! The headers that every answer carries.

use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// What a page of the app may do. Nothing inline, nothing from elsewhere, in nobody's frame.
const APP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' blob: data:; connect-src 'self'; font-src 'self'; manifest-src 'self'; \
    worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const COMMON: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];

/// Puts them on. A policy for the content and for caches that is there already stays: the report has
/// a stricter one, and files named after their content may be kept.
pub fn apply(headers: &mut HeaderMap) {
    for (name, value) in COMMON {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(APP));
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_inline_and_nothing_from_elsewhere() {
        let mut headers = HeaderMap::new();
        apply(&mut headers);
        let policy = headers["content-security-policy"].to_str().unwrap();
        for directive in policy.split("; ") {
            let (name, sources) = directive.split_once(' ').unwrap();
            for source in sources.split(' ') {
                let harmless = matches!(source, "'none'" | "'self'");
                assert!(harmless || name == "img-src", "{directive}");
            }
        }
        assert!(policy.starts_with("default-src 'none'; "));
        assert_eq!(headers["cache-control"], "no-store");
        assert_eq!(headers["x-content-type-options"], "nosniff");
    }

    #[test]
    fn what_is_stricter_stays() {
        let mut headers = HeaderMap::new();
        headers.insert(
            "content-security-policy",
            HeaderValue::from_static("sandbox"),
        );
        headers.insert("cache-control", HeaderValue::from_static("immutable"));
        apply(&mut headers);
        assert_eq!(headers["content-security-policy"], "sandbox");
        assert_eq!(headers["cache-control"], "immutable");
        assert_eq!(headers["referrer-policy"], "no-referrer");
    }
}
