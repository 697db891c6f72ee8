//! What is where, and who gets it.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Path, Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{any, get};
use handover_host::system::clock;

use super::auth::{self, Secret};
use super::grant::Grant;
use super::scope::Scope;
use super::state::Console;
use super::{assets, live, origin, pages, policy, record, upgrade, view};

/// Where one-time links are; nothing below it is ever logged.
pub const OPEN: &str = "/open/";

/// All routes of `console`.
pub fn routes(console: Arc<Console>) -> Router {
    let guard = middleware::from_fn_with_state(Arc::clone(&console), guard);
    Router::new()
        .route("/open/{secret}", get(open))
        .route("/api/live", any(live))
        .route("/api/view/{session}/{viewer}", any(view))
        .route("/api/picture/{session}/{name}", get(record::picture))
        .route("/api/report/{session}", get(record::page))
        .fallback(asset)
        .layer(guard)
        .with_state(console)
}

/// Whom a request is for, where it comes from, and who sends it: in this order, before anything else.
async fn guard(State(console): State<Arc<Console>>, request: Request, next: Next) -> Response {
    let mut answer = match admit(&console, request) {
        Ok(request) => next.run(request).await,
        Err(refused) => *refused,
    };
    policy::apply(answer.headers_mut());
    answer
}

/// Lets a request in, with the right of its browser.
fn admit(console: &Console, mut request: Request) -> Result<Request, Box<Response>> {
    let headers = request.headers();
    let mut host = texts(headers, &header::HOST);
    // A request may name its host in its first line too.
    if let Some(named) = request.uri().authority() {
        host.push(named.as_str());
        host.dedup();
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let must_say = !reads || upgrade::is_asked(headers);
    let origin = texts(headers, &header::ORIGIN);
    console
        .names
        .check(&host, &origin, must_say)
        .map_err(|refused| {
            let status = match refused {
                origin::Refused::Host => StatusCode::MISDIRECTED_REQUEST,
                origin::Refused::Origin => StatusCode::FORBIDDEN,
            };
            Box::new(pages::refusal(status, &refused.to_string()))
        })?;
    if request.uri().path().starts_with(OPEN) {
        return Ok(request);
    }
    let cookies = texts(headers, &header::COOKIE);
    let cookie = auth::cookie(cookies.into_iter(), &console.cookie);
    let grant = cookie.and_then(|cookie| console.access().grant(cookie, clock::now()));
    let grant = grant.ok_or_else(|| Box::new(pages::not_let_in()))?;
    request.extensions_mut().insert(grant);
    Ok(request)
}

/// The values of a header; one that is no text becomes one that nothing allows.
fn texts<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Vec<&'a str> {
    let values = headers.get_all(name).into_iter();
    values.map(|value| value.to_str().unwrap_or("\0")).collect()
}

/// Lets the browser in that opens a one-time link.
async fn open(
    State(console): State<Arc<Console>>,
    Path(secret): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    // Whoever looks ahead does not want to go in.
    let ahead = ["sec-purpose", "purpose", "x-moz", "x-purpose"];
    let ahead = ahead.iter().any(|name| headers.contains_key(*name));
    // A picture or a script of another site's page asks for it too. What says nothing of it is no browser, or an
    // old one.
    let modes = headers.get_all("sec-fetch-mode").iter();
    let mut elsewhere = modes.filter(|mode| mode.as_bytes() != b"navigate");
    if method != Method::GET || ahead || elsewhere.next().is_some() {
        return pages::unopened();
    }
    let Ok(cookie) = Secret::generate() else {
        return pages::refusal(StatusCode::INTERNAL_SERVER_ERROR, "there is no randomness");
    };
    let now = clock::now();
    let Some(grant) = console.access().spend(&secret, &cookie, now) else {
        return pages::no_such_link();
    };
    let left = grant.until().map(|until| until.moment.since(now).as_secs());
    let age = left.map_or_else(String::new, |left| format!("; Max-Age={left}"));
    let secure = if console.names.scheme() == "https" {
        "; Secure"
    } else {
        ""
    };
    let (name, value) = (&console.cookie, cookie.reveal());
    let cookie = format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/{age}{secure}");
    match HeaderValue::try_from(cookie) {
        Ok(mut cookie) => {
            cookie.set_sensitive(true);
            pages::welcome(cookie)
        }
        Err(_) => pages::no_such_link(),
    }
}

/// A file of the app.
async fn asset(method: Method, request: Request) -> Response {
    if !matches!(method, Method::GET | Method::HEAD) {
        return not_allowed();
    }
    match assets::find(request.uri().path()) {
        Some(asset) => asset.answer(request.headers()),
        None => not_found(),
    }
}

/// The live connection.
async fn live(
    State(console): State<Arc<Console>>,
    Extension(grant): Extension<Arc<Grant>>,
    request: Request,
) -> Response {
    if !upgrade::is_asked(request.headers()) {
        return no_socket();
    }
    let Some(room) = console.socket() else {
        return no_room();
    };
    upgrade::accept(request, "", live::MAX_MESSAGE, async move |socket| {
        live::serve(socket, grant, console).await;
        drop(room);
    })
}

/// One viewer.
async fn view(
    State(console): State<Arc<Console>>,
    Extension(grant): Extension<Arc<Grant>>,
    Path((session, viewer)): Path<(String, String)>,
    request: Request,
) -> Response {
    if !upgrade::is_asked(request.headers()) {
        return no_socket();
    }
    let Some(room) = console.socket() else {
        return no_room();
    };
    let Some(gate) = grant.take_view(&session, &viewer) else {
        return pages::refusal(
            StatusCode::NOT_FOUND,
            "there is no such viewer; call view.open for one",
        );
    };
    upgrade::accept(request, "binary", view::MAX_MESSAGE, async move |socket| {
        view::serve(socket, &gate, grant, console).await;
        drop(room);
    })
}

/// Refuses a browser of one desktop what is about a whole session.
pub fn whole(grant: &Grant) -> Result<(), Box<Response>> {
    match grant.scope() {
        Scope::All => Ok(()),
        Scope::Desktop { .. } => {
            let sentence = "this link is for one desktop alone";
            Err(Box::new(pages::refusal(StatusCode::FORBIDDEN, sentence)))
        }
    }
}

fn not_found() -> Response {
    pages::refusal(StatusCode::NOT_FOUND, "there is nothing here")
}

fn not_allowed() -> Response {
    pages::refusal(StatusCode::METHOD_NOT_ALLOWED, "this can only be read")
}

fn no_socket() -> Response {
    pages::refusal(StatusCode::BAD_REQUEST, "this is for a WebSocket")
}

fn no_room() -> Response {
    pages::refusal(
        StatusCode::SERVICE_UNAVAILABLE,
        "too many pages of this console are open; close some",
    )
}
