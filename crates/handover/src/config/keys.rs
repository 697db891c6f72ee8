//! The keys: what each may hold, and how its value is shown.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::Uri;

use super::given::Given;
use super::{Config, Notify, Occasion};
use crate::cli::duration;
use crate::console::is_host;

/// Bounds of a lease's TTL in milliseconds, as hosts have them.
const TTL_MS: (u64, u64) = (200, 600_000);
/// Bounds of its other limits in milliseconds, as hosts have them.
const LIMIT_MS: (u64, u64) = (200, 86_400_000);

/// A key of the configuration.
#[derive(Debug)]
pub struct Key {
    /// Its name with that of its table, such as `notify.url`.
    pub name: &'static str,
    /// Puts a value from the file into the settings.
    pub(super) set: fn(&mut Config, &Given<'_>) -> Result<(), Wrong>,
    /// The value that holds, as people may see it; null if there is none.
    pub value: fn(&Config) -> Value,
}

impl Key {
    /// The table that it stands in.
    pub fn section(&self) -> &'static str {
        self.name.split('.').next().unwrap_or_default()
    }
}

/// What is wrong with a value.
#[derive(Debug)]
pub struct Wrong {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
    /// Where, if not at the whole value.
    pub span: Option<Range<usize>>,
}

impl Wrong {
    /// Something wrong with the whole value.
    pub fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            remedy: remedy.into(),
            span: None,
        }
    }

    /// The same at this place.
    pub fn at(self, span: Range<usize>) -> Self {
        Self {
            span: Some(span),
            ..self
        }
    }
}

/// Every key, in the order in which they are shown.
pub const KEYS: [Key; 11] = [
    Key {
        name: "notify.url",
        set: |config, given| {
            config.notify.url = Some(url(given.text("url = \"https://ntfy.sh/TOPIC\"")?)?);
            Ok(())
        },
        // Services take tokens in the query too.
        value: |config| {
            let url = config.notify.url.as_deref();
            json!(url.map(|url| match url.split_once('?') {
                Some((url, _)) => format!("{url}?…"),
                None => url.to_owned(),
            }))
        },
    },
    Key {
        name: "notify.topic",
        set: |config, given| {
            let topic = given.text("topic = \"alerts\"")?;
            if !is_topic(topic) {
                let remedy = "give up to 64 letters, digits, - and _";
                return Err(Wrong::new("this can be no topic", remedy));
            }
            config.notify.topic = Some(topic.to_owned());
            Ok(())
        },
        value: |config| json!(config.notify.topic),
    },
    Key {
        name: "notify.token_file",
        set: |config, given| {
            let path = given.text("token_file = \"ntfy.token\"")?;
            let home = std::env::var_os("HOME").map(PathBuf::from);
            config.notify.token_file = Some(match (path.strip_prefix("~/"), home) {
                (Some(below), Some(home)) => home.join(below),
                _ => given.directory.join(path),
            });
            Ok(())
        },
        value: |config| json!(config.notify.token_file),
    },
    Key {
        name: "notify.desktop",
        set: |config, given| {
            config.notify.desktop = given.truth()?;
            Ok(())
        },
        value: |config| json!(config.notify.desktop),
    },
    Key {
        name: "notify.bell",
        set: |config, given| {
            config.notify.bell = given.truth()?;
            Ok(())
        },
        value: |config| json!(config.notify.bell),
    },
    Key {
        name: "notify.on",
        set: |config, given| {
            config.notify.on = occasions(given)?;
            Ok(())
        },
        value: |config| {
            let names = config.notify.on.iter().map(|occasion| occasion.name());
            json!(names.collect::<Vec<_>>())
        },
    },
    Key {
        name: "console.port",
        set: |config, given| {
            let port = given.number(1..65536, "port = 7468")?;
            config.console.port = u16::try_from(port).ok();
            Ok(())
        },
        value: |config| json!(config.console.port),
    },
    Key {
        name: "console.hosts",
        set: |config, given| {
            config.console.hosts = hosts(given)?;
            Ok(())
        },
        value: |config| json!(config.console.hosts),
    },
    Key {
        name: "control.ttl",
        set: |config, given| {
            config.control.ttl = Some(given.duration(TTL_MS, "ttl = \"30s\"")?);
            Ok(())
        },
        value: |config| json!(config.control.ttl.map(shown)),
    },
    Key {
        name: "control.idle",
        set: |config, given| {
            config.control.idle = Some(given.duration(LIMIT_MS, "idle = \"10m\"")?);
            Ok(())
        },
        value: |config| json!(config.control.idle.map(shown)),
    },
    Key {
        name: "control.max",
        set: |config, given| {
            config.control.max = Some(given.duration(LIMIT_MS, "max = \"1h\"")?);
            Ok(())
        },
        value: |config| json!(config.control.max.map(shown)),
    },
];

fn shown(given: Duration) -> String {
    written(duration::ms(given))
}

/// Milliseconds as they can be written in the file.
pub fn written(ms: u64) -> String {
    match ms {
        ms if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
        ms if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

/// The topic names that ntfy takes.
pub fn is_topic(text: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=64).contains(&text.len()) && text.chars().all(letters)
}

/// Whether this is this very machine, whatever the network looks like.
pub fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn url(text: &str) -> Result<String, Wrong> {
    let example = "write it as https://HOST/PATH";
    let uri: Uri = text
        .parse()
        .map_err(|_| Wrong::new("this is no address", example))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(Wrong::new("this address is not of the web", example));
    }
    let Some(authority) = uri
        .authority()
        .filter(|authority| !authority.host().is_empty())
    else {
        return Err(Wrong::new("this address names no host", example));
    };
    if authority.as_str().contains('@') {
        let remedy = "take out what is before the @ and set `notify.token_file`";
        return Err(Wrong::new(
            "a name or password does not belong into an address",
            remedy,
        ));
    }
    Ok(text.to_owned())
}

fn occasions(given: &Given<'_>) -> Result<Vec<Occasion>, Wrong> {
    let mut on = Vec::new();
    for (name, span) in given.texts("on = [\"request_human\"]")? {
        let known = Occasion::ALL.into_iter().find(|known| known.name() == name);
        let Some(occasion) = known else {
            let remedy = format!(
                "there are {}",
                Occasion::ALL.map(Occasion::name).join(" and ")
            );
            return Err(Wrong::new("this is nothing to be told of", remedy).at(span));
        };
        if !on.contains(&occasion) {
            on.push(occasion);
        }
    }
    Ok(on)
}

fn hosts(given: &Given<'_>) -> Result<Vec<String>, Wrong> {
    let mut hosts: Vec<String> = Vec::new();
    for (host, span) in given.texts("hosts = [\"box.example\"]")? {
        if !is_host(host) {
            let remedy = "give the name alone, without scheme, port or path";
            return Err(Wrong::new("this is no name of a host", remedy).at(span));
        }
        hosts.push(host.to_ascii_lowercase());
    }
    Ok(hosts)
}

/// The key whose value does not go with the others, if there is one.
pub fn consistent(config: &Config) -> Option<(&'static str, Wrong)> {
    consistent_notify(&config.notify).or_else(|| {
        let both = config.control.idle.zip(config.control.max);
        both.filter(|(idle, max)| idle > max).map(|_| {
            let message = "this is longer than `control.max`, so it does nothing";
            (
                "control.idle",
                Wrong::new(message, "shorten it, or take it out"),
            )
        })
    })
}

fn consistent_notify(notify: &Notify) -> Option<(&'static str, Wrong)> {
    let Some(url) = &notify.url else {
        let alone = [
            ("notify.topic", notify.topic.is_some()),
            ("notify.token_file", notify.token_file.is_some()),
        ];
        let (key, _) = alone.into_iter().find(|(_, set)| *set)?;
        return Some((
            key,
            Wrong::new("this does nothing without `notify.url`", "set that too"),
        ));
    };
    let uri: Uri = url.parse().ok()?;
    if notify.topic.is_some() && !matches!(uri.path(), "" | "/") {
        let remedy = "take out this key, or leave the root of the server in `notify.url`";
        return Some((
            "notify.topic",
            Wrong::new("`notify.url` has a path already", remedy),
        ));
    }
    let clear = uri.scheme_str() == Some("http") && !uri.host().is_some_and(is_loopback);
    if notify.token_file.is_some() && clear {
        let message = "the token would go over the network in clear";
        return Some((
            "notify.token_file",
            Wrong::new(message, "use https:// in `notify.url`"),
        ));
    }
    None
}
