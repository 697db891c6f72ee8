//! Notices to an address on the web, as ntfy reads them and others can.
//!
//! A notice is posted as JSON to the address as it is configured, whatever listens there. An ntfy server that gets
//! such a post on a topic takes the headers for how to show it; one that gets it on its root, with
//! `notify.topic`, takes the JSON itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use handover_host::notices::Notice;
use serde::Serialize;
use tokio_rustls::rustls::crypto::ring;
use ureq::http::{Response, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body};

use super::message::Message;
use super::queue::Queue;
use super::retry::Retry;
use super::{Job, token};
use crate::config::{is_loopback, is_topic, read_limited};

/// How long one try may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// Where the authorities are listed that this machine trusts, Debian's place first.
const TRUSTED: [&str; 2] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
];
/// The largest such list, in bytes.
const LONGEST_LIST: u64 = 4 << 20;

/// What is posted.
#[derive(Debug, Serialize)]
struct Post<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<&'a str>,
    title: &'a str,
    message: &'a str,
    priority: u8,
    tags: [&'static str; 1],
    /// The same for programs.
    #[serde(flatten)]
    notice: &'a Notice,
}

/// What became of a try.
enum Tried {
    Taken,
    /// It can be tried again, after the time that was asked for.
    Failed(String, Option<Duration>),
    /// It would fail again.
    Refused(String),
}

/// Posts what comes, one after the other.
pub fn run(queue: &Queue) {
    loop {
        let job = queue.next();
        let Some(url) = job.notify.url.clone() else {
            continue;
        };
        // The configuration was checked.
        let Ok(uri) = url.parse::<Uri>() else {
            continue;
        };
        post(&job, &uri);
    }
}

fn post(job: &Job, uri: &Uri) {
    // The address may hold a secret; its host does not.
    let host = uri.host().unwrap_or_default();
    let agent = match agent(uri) {
        Ok(agent) => agent,
        Err(why) => {
            tracing::warn!(host, "a notice is given up: {why}");
            return;
        }
    };
    let (began, mut retry) = (Instant::now(), Retry::default());
    while !job.is_late(Instant::now()) {
        let (why, asked) = match attempt(&agent, job, uri) {
            Tried::Taken => return,
            Tried::Refused(why) => {
                tracing::warn!(host, "a notice is given up: {why}");
                return;
            }
            Tried::Failed(why, asked) => (why, asked),
        };
        let Some(pause) = retry.after_failure(began.elapsed(), asked) else {
            let tries = retry.tries();
            tracing::warn!(host, tries, "a notice is given up: {why}");
            return;
        };
        if retry.tries() == 1 {
            tracing::info!(host, "a notice was not taken and is tried again: {why}");
        }
        thread::sleep(pause);
    }
}

/// A client for this address.
///
/// # Errors
/// When nothing says which certificates to trust.
fn agent(uri: &Uri) -> Result<Agent, String> {
    let trusted = match uri.scheme_str() {
        Some("https") => trusted(variable("SSL_CERT_FILE"))?,
        _ => Vec::new(),
    };
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(trusted)))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build();
    let mut config = Agent::config_builder()
        .timeout_global(Some(ANSWERS_WITHIN))
        // Wherever it would lead, nobody has configured that.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(concat!("handover/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls);
    if uri.host().is_some_and(is_loopback) {
        config = config.proxy(None);
    }
    Ok(Agent::new_with_config(config.build()))
}

fn variable(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// The authorities that this machine trusts: those in `named` if that is given.
fn trusted(named: Option<PathBuf>) -> Result<Vec<Certificate<'static>>, String> {
    let places = named.map_or_else(|| TRUSTED.map(PathBuf::from).to_vec(), |named| vec![named]);
    let lists = places
        .iter()
        .filter_map(|path| read_limited(path, LONGEST_LIST).ok());
    for list in lists {
        let found: Vec<_> = parse_pem(&list)
            .filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            })
            .collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let places: Vec<_> = places
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let places = places.join(" or ");
    Err(format!(
        "no certificate to trust is in {places}; install ca-certificates"
    ))
}

fn attempt(agent: &Agent, job: &Job, uri: &Uri) -> Tried {
    let Message {
        title,
        text,
        priority,
        tag,
    } = &job.message;
    let in_path = topic_of(uri);
    let post = Post {
        topic: job.notify.topic.as_deref().or(in_path),
        title,
        message: text,
        priority: *priority as u8,
        tags: [tag],
        notice: &job.notice,
    };
    // Texts and numbers can always be written as JSON.
    let Ok(body) = serde_json::to_vec(&post) else {
        return Tried::Refused("it cannot be written as JSON".to_owned());
    };
    let mut request = agent.post(uri).header("Content-Type", "application/json");
    if in_path.is_some() {
        // How ntfy (2.10 or newer) shows JSON that is posted on a topic.
        request = request
            .header("X-Template", "yes")
            .header("X-Title", "{{.title}}")
            .header("X-Message", "{{.message}}")
            .header("X-Priority", (*priority as u8).to_string())
            .header("X-Tags", *tag);
    }
    if let Some(path) = &job.notify.token_file {
        match token::read(path) {
            Ok(token) => request = request.header("Authorization", format!("Bearer {token}")),
            Err(error) => {
                return Tried::Refused(format!("{} cannot be used: {error}", path.display()));
            }
        }
    }
    match request.send(&body) {
        Ok(answer) => judged(&answer),
        Err(ureq::Error::BadUri(_) | ureq::Error::Http(_)) => {
            Tried::Refused("`notify.url` is no address to post to".to_owned())
        }
        Err(error) => Tried::Failed(error.to_string(), None),
    }
}

/// What an answer means. Its text is of no interest and not read.
fn judged(answer: &Response<Body>) -> Tried {
    let status = answer.status();
    let why = format!("the answer was {status}");
    match status.as_u16() {
        200..=299 => Tried::Taken,
        300..=399 => Tried::Refused(format!(
            "{why}; put the address that it leads to into `notify.url`"
        )),
        401 | 403 => Tried::Refused(format!("{why}; look at `notify.token_file`")),
        408 | 425 | 429 | 500.. => {
            let asked = answer.headers().get("Retry-After");
            let asked = asked.and_then(|value| value.to_str().ok()?.trim().parse().ok());
            Tried::Failed(why, asked.map(Duration::from_secs))
        }
        _ => Tried::Refused(why),
    }
}

/// The last part of the path, if it can be a topic.
fn topic_of(uri: &Uri) -> Option<&str> {
    let last = uri.path().trim_end_matches('/').rsplit('/').next()?;
    is_topic(last).then_some(last)
}

#[cfg(test)]
mod tests {
    use handover_host::notices::About;

    use super::super::message::tests::request;
    use super::*;

    #[test]
    fn what_is_posted() {
        let mut notice = request();
        if let About::RequestHuman { reason, .. } = &mut notice.about {
            *reason = "log in".to_owned();
        }
        let message = Message::of(&notice);
        let post = Post {
            topic: Some("alerts"),
            title: &message.title,
            message: &message.text,
            priority: message.priority as u8,
            tags: [message.tag],
            notice: &notice,
        };
        insta::assert_snapshot!(serde_json::to_string_pretty(&post).unwrap(), @r#"
        {
          "topic": "alerts",
          "title": "Agent a1 asks for a person (shop\\u{1b}[2J)",
          "message": "log in\nhandover watch d1 --control --session s1",
          "priority": 4,
          "tags": [
            "raised_hand"
          ],
          "session": "s1",
          "sessionName": "shop\u001b[2J",
          "at": "1970-01-01T00:00:00.000Z",
          "kind": "request_human",
          "requestId": "r1",
          "desktop": "d1",
          "agent": "a1",
          "reason": "log in"
        }
        "#);
    }

    #[test]
    fn without_a_list_nothing_is_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("list.pem");
        for text in ["", "-----BEGIN NOTHING-----\n", "\u{1}"] {
            std::fs::write(&list, text).unwrap();
            let why = trusted(Some(list.clone())).unwrap_err();
            assert!(why.contains("list.pem"), "{why}");
        }
        assert!(trusted(Some(dir.path().join("none"))).is_err());
    }

    #[test]
    fn topics_in_addresses() {
        for (url, topic) in [
            ("https://ntfy.sh/alerts", Some("alerts")),
            ("https://ntfy.sh/alerts/?auth=x", Some("alerts")),
            ("https://ntfy.sh", None),
            ("https://a.example/hook.php", None),
        ] {
            assert_eq!(topic_of(&url.parse().unwrap()), topic, "{url}");
        }
    }
}
