//! The record of a session: its pictures, and its report. Read from the session's directory and its
//! host; nothing here is written.

use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, Path as InPath, State};
use axum::http::StatusCode;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use handover_host::session::is_session_id;
use handover_host::system::dirs::Roots;
use handover_protocol::ErrorCode;
use rustix::fs::OFlags;

use super::grant::Grant;
use super::pages::refusal;
use super::routes::whole;
use super::state::Console;
use crate::cli::report;

/// The longest picture that is shown, in bytes.
const MAX_PICTURE: u64 = 64 << 20;
/// What a PNG file begins with.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
/// The longest name of a picture.
const MAX_NAME: usize = 255;
/// How long a host may take for each page of its record.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A picture of a session's evidence.
pub async fn picture(
    Extension(grant): Extension<Arc<Grant>>,
    InPath((session, name)): InPath<(String, String)>,
) -> Response {
    if let Err(refused) = whole(&grant) {
        return *refused;
    }
    let read = tokio::task::spawn_blocking(move || {
        let sessions = Roots::from_env().state().ok()?;
        read_picture(&evidence(&sessions, &session)?, &name)
    });
    match read.await {
        Ok(Some(picture)) => {
            // A picture never changes under its name.
            let forever = "private, max-age=31536000, immutable";
            let headers = [
                (header::CONTENT_TYPE, "image/png"),
                (header::CACHE_CONTROL, forever),
            ];
            (headers, picture).into_response()
        }
        Ok(None) | Err(_) => refusal(StatusCode::NOT_FOUND, "there is no such picture"),
    }
}

/// The evidence of the session called `id`; none if that is no session's name.
fn evidence(sessions: &Path, id: &str) -> Option<PathBuf> {
    is_session_id(id).then(|| sessions.join(id).join("evidence"))
}

/// The picture called `name` in `evidence`, and nothing else there or anywhere.
fn read_picture(evidence: &Path, name: &str) -> Option<Vec<u8>> {
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_name = name.len() <= MAX_NAME && !name.starts_with('.') && name.bytes().all(harmless);
    if !is_name || name.is_empty() {
        return None;
    }
    let file = std::fs::File::options()
        .read(true)
        // Neither a link nor a pipe that would block us.
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(evidence.join(name))
        .ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_PICTURE {
        return None;
    }
    let mut picture = Vec::with_capacity(usize::try_from(metadata.len()).ok()?);
    file.take(MAX_PICTURE).read_to_end(&mut picture).ok()?;
    picture.starts_with(PNG).then_some(picture)
}

/// The report of a session, live or not.
pub async fn page(
    State(console): State<Arc<Console>>,
    Extension(grant): Extension<Arc<Grant>>,
    InPath(session): InPath<String>,
) -> Response {
    if let Err(refused) = whole(&grant) {
        return *refused;
    }
    if !is_session_id(&session) {
        return refusal(StatusCode::NOT_FOUND, "there is no such session");
    }
    // A page can be large, so they are made one after the other.
    let Ok(_turn) = console.reports.acquire().await else {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "the console has ended");
    };
    match report::of_session(&session, ANSWER_WITHIN).await {
        Ok(html) => {
            let headers = [
                (header::CONTENT_TYPE, "text/html; charset=utf-8"),
                (header::CONTENT_SECURITY_POLICY, report::POLICY),
            ];
            (headers, html).into_response()
        }
        Err(failure) => {
            let status = match failure.code() {
                ErrorCode::SessionUnknown => StatusCode::NOT_FOUND,
                _ => StatusCode::BAD_GATEWAY,
            };
            refusal(status, failure.message())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pictures_of_the_evidence() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = dir.path();
        let here = evidence(sessions, "k3j2h1x9").unwrap();
        let other = evidence(sessions, "k3j2h1x8").unwrap();
        for place in [&here, &other] {
            std::fs::create_dir_all(place).unwrap();
        }
        let picture = [PNG, b"x"].concat();
        std::fs::write(here.join("1.png"), &picture).unwrap();
        std::fs::write(here.join("2.png"), b"secret").unwrap();
        std::fs::write(here.join(".3.png"), &picture).unwrap();
        std::fs::write(other.join("4.png"), &picture).unwrap();
        std::os::unix::fs::symlink(other.join("4.png"), here.join("5.png")).unwrap();
        std::fs::create_dir(here.join("6.png")).unwrap();
        assert_eq!(read_picture(&here, "1.png"), Some(picture));
        let absolute = here.join("1.png");
        for name in [
            "",
            ".",
            "..",
            "2.png",
            ".3.png",
            "4.png",
            "5.png",
            "6.png",
            "7.png",
            "../k3j2h1x8/evidence/4.png",
            "./1.png",
            "1.png/",
            "1.png\0",
            "..\\1.png",
            "%2e%2e",
            absolute.to_str().unwrap(),
        ] {
            assert_eq!(read_picture(&here, name), None, "{name:?}");
        }
        for id in ["", ".", "..", "../x", "k3j2h1x9/..", "/etc"] {
            assert_eq!(evidence(sessions, id), None, "{id:?}");
        }
    }
}
