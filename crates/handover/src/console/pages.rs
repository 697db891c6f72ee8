//! The few pages that are not of the app. They have no style and no script: the policy allows neither
//! within a page.

use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};

/// What a refused browser is told to do.
const AGAIN: &str = "<p>Get a new link: run <code>handover console link</code> in a terminal, or start \
    <code>handover console</code> again. Each link can be opened once.</p>";

/// The page that goes on to the app. The cookie came with it, and a browser sends it only from a page of
/// this site, which a redirect from elsewhere is not.
pub fn welcome(cookie: HeaderValue) -> Response {
    let page = page(
        "<meta http-equiv=\"refresh\" content=\"0; url=/\">",
        "<p><a href=\"/\">Go on</a></p>",
    );
    (StatusCode::OK, [(header::SET_COOKIE, cookie)], page).into_response()
}

/// The answer to who only wants to know what a link would open.
pub fn unopened() -> Response {
    let page = page("", "<p>This link is opened by a person, in a browser.</p>");
    (StatusCode::FORBIDDEN, page).into_response()
}

/// The answer to a link that is not good, or no longer.
pub fn no_such_link() -> Response {
    let said = "<p>This link is not good: it has been opened already, or its time is over.</p>";
    (StatusCode::FORBIDDEN, page("", &format!("{said}\n{AGAIN}"))).into_response()
}

/// The answer to a browser without a cookie.
pub fn not_let_in() -> Response {
    let said = "<p>This browser is not let in, or its time is over.</p>";
    (
        StatusCode::UNAUTHORIZED,
        page("", &format!("{said}\n{AGAIN}")),
    )
        .into_response()
}

/// A refusal in one sentence.
pub fn refusal(status: StatusCode, sentence: &str) -> Response {
    let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    (status, plain, format!("{sentence}\n")).into_response()
}

fn page(head: &str, body: &str) -> Response {
    // An empty icon: a browser asks for `/favicon.ico` otherwise, which needs the cookie and is not there.
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n{head}\
         <title>Handover</title>\n</head>\n<body>\n<main>\n<h1>Handover</h1>\n{body}\n</main>\n</body>\n</html>\n"
    );
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}
