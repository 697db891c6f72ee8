//! The page. It holds no script, loads nothing, and everything in it that comes from outside is
//! escaped: window titles and notes may be written by whoever wants to mislead its reader.

use std::fmt::Write;

use handover_protocol::Event;
use serde_json::Value;

use super::super::text::plain;
use super::describe;
use super::pictures::{Picture, Pictures};

/// All of the page's style; the policy names its hash, so no other style is applied.
const STYLE: &str = include_str!("style.css");

/// SHA-256 of [`STYLE`] in base64.
const STYLE_HASH: &str = "v58JPkOATHq9J9npnEjoognA8SwUNGbpFKGiXOJSiBA=";

/// What a browser may do with the page when a server sends it: even less than the page itself allows.
pub const POLICY: &str = "sandbox; default-src 'none'; img-src data:; \
    style-src 'sha256-v58JPkOATHq9J9npnEjoognA8SwUNGbpFKGiXOJSiBA='; frame-ancestors 'none'; \
    base-uri 'none'; form-action 'none'";

/// What the page tells.
#[derive(Debug)]
pub struct Page<'a> {
    /// The session's id.
    pub session: &'a str,
    /// The head of the chain of events.
    pub head: &'a str,
    /// Every event, oldest first.
    pub events: &'a [Event],
}

impl Page<'_> {
    /// The page as HTML.
    pub fn render(&self, pictures: &mut Pictures) -> String {
        let mut html = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut html, pictures);
        html
    }

    fn write(&self, html: &mut String, pictures: &mut Pictures) -> std::fmt::Result {
        let session = escape(self.session);
        write!(
            html,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             img-src data:; style-src 'sha256-{STYLE_HASH}'; base-uri 'none'; \
             form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>Handover: session {session}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
             <h1>Session {session}</h1>\n"
        )?;
        self.summary(html)?;
        self.takeovers(html)?;
        html.push_str(
            "<h2>Everything that happened</h2>\n<table>\n<thead><tr><th>#</th><th>Time</th>\
             <th>Who</th><th>Desktop, agent</th><th>What</th></tr></thead>\n<tbody>\n",
        );
        for event in self.events {
            row(html, event, pictures)?;
        }
        html.push_str("</tbody>\n</table>\n</body>\n</html>\n");
        Ok(())
    }

    fn summary(&self, html: &mut String) -> std::fmt::Result {
        let events = self.events.len();
        let refused = self
            .events
            .iter()
            .filter(|event| describe::is_refused(event))
            .count();
        write!(
            html,
            "<dl>\n<dt>Events</dt><dd>{events}, of which {refused} were refused</dd>\n"
        )?;
        if let (Some(first), Some(last)) = (self.events.first(), self.events.last()) {
            write!(
                html,
                "<dt>From</dt><dd>{}</dd>\n<dt>To</dt><dd>{}</dd>\n",
                first.at, last.at
            )?;
        }
        write!(
            html,
            "<dt>Head</dt><dd><code>{}</code></dd>\n</dl>\n",
            escape(self.head)
        )
    }

    fn takeovers(&self, html: &mut String) -> std::fmt::Result {
        let is_end =
            |event: &&Event| event.kind.starts_with("takeover_") && event.kind != "takeover_start";
        let mut ends = self.events.iter().filter(is_end).peekable();
        if ends.peek().is_none() {
            return Ok(());
        }
        html.push_str("<h2>Takeovers</h2>\n<ul>\n");
        for event in ends {
            let what = escape(&describe::what(event));
            let desktop = event
                .desktop
                .as_ref()
                .map_or_else(String::new, |d| escape(d.as_str()));
            write!(
                html,
                "<li><a href=\"#e{}\">{}</a> {desktop}: {what}",
                event.seq, event.at
            )?;
            if let Some(note) = event.fields.get("note").and_then(Value::as_str) {
                write!(html, "<blockquote>{}</blockquote>", escape(note))?;
            }
            html.push_str("</li>\n");
        }
        html.push_str("</ul>\n");
        Ok(())
    }
}

fn row(html: &mut String, event: &Event, pictures: &mut Pictures) -> std::fmt::Result {
    let class = if describe::is_refused(event) {
        "refused"
    } else if event.kind.starts_with("takeover_") {
        "takeover"
    } else {
        "plain"
    };
    let agent = event.agent.as_ref().map(|agent| agent.as_str());
    let desktop = event.desktop.as_ref().map(|desktop| desktop.as_str());
    let place = desktop.or(agent).unwrap_or_default();
    let epoch = event
        .epoch
        .map_or_else(String::new, |epoch| format!(" <small>{epoch}</small>"));
    write!(
        html,
        "<tr id=\"e{0}\" class=\"{class}\"><td>{0}</td><td>{1}</td><td>{2}</td><td>{3}{epoch}</td>\
         <td>{4}",
        event.seq,
        event.at,
        escape(&describe::who(event)),
        escape(place),
        escape(&describe::what(event))
    )?;
    if let Some(words) = describe::quote(event) {
        write!(html, "<blockquote>{}</blockquote>", escape(words))?;
    }
    let rest = describe::rest(event);
    if !rest.is_empty() {
        write!(html, "<br><small>{}</small>", escape(&rest))?;
    }
    if let Some(path) = picture_of(event) {
        match pictures.take(path) {
            Picture::Inline(data) => {
                write!(html, "<br><img alt=\"the desktop then\" src=\"{data}\">")?;
            }
            Picture::TooMuch => write!(html, "<br><small>picture: {}</small>", escape(path))?,
            Picture::Missing => {
                write!(
                    html,
                    "<br><small>picture not found: {}</small>",
                    escape(path)
                )?;
            }
        }
    }
    html.push_str("</td></tr>\n");
    Ok(())
}

/// The picture that an event names.
fn picture_of(event: &Event) -> Option<&str> {
    let path = event
        .fields
        .get("screenshot")
        .or_else(|| event.fields.get("path"));
    path.and_then(Value::as_str)
        .filter(|path| path.ends_with(".png"))
}

/// `text` for HTML, in an element or an attribute; control characters are written out.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_policy_allows_the_style() {
        assert_eq!(STYLE_HASH, STANDARD.encode(Sha256::digest(STYLE)));
        assert!(POLICY.contains(&format!("style-src 'sha256-{STYLE_HASH}';")));
    }

    #[test]
    fn everything_from_outside_is_escaped() {
        let hostile = "</td><script>alert(1)</script>\u{202e}'\"&";
        let event: Event = serde_json::from_value(json!({
            "seq": 1, "at": "2026-01-31T09:30:00.250Z", "kind": "takeover_return<b>",
            "source": "human", "actor": {"uid": 0, "pid": 7, "via": hostile, "agent": hostile},
            "uid": 0, "pid": 7, "desktop": hostile, "agent": hostile, "note": hostile,
            "holder": hostile, "screenshot": format!("{hostile}.png"), "code": hostile,
            hostile: hostile,
        }))
        .unwrap();
        let dir = tempfile::tempdir().unwrap();
        let page = Page {
            session: hostile,
            head: hostile,
            events: &[event],
        };
        let html = page.render(&mut Pictures::of(dir.path()));
        assert!(!html.contains("<script"), "{html}");
        assert!(!html.contains("<b>"), "{html}");
        assert!(!html.contains('\u{202e}'), "{html}");
        assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
        // Nothing is loaded from anywhere.
        for word in ["http:", "https:", "<link", "<iframe", "javascript:", " on"] {
            assert!(!html.contains(&format!("=\"{word}")), "{word}");
        }
    }

    #[test]
    fn a_short_story() {
        let event = |seq: u64, kind: &str, source: &str| {
            json!({
                "seq": seq, "at": "2026-01-31T09:30:00.250Z", "kind": kind, "source": source,
                "actor": {"uid": 0, "pid": 7, "via": "mcp"}, "uid": 0, "pid": 7, "desktop": "d1",
                "epoch": 1,
            })
        };
        let mut click = event(1, "desktop_click", "agent");
        click["x"] = 5.into();
        click["y"] = 6.into();
        click["outcome"] = "ok".into();
        let mut end = event(2, "takeover_return", "human");
        end["heldMs"] = 61_000.into();
        end["note"] = "logged in".into();
        let events = [click, end].map(|event| serde_json::from_value(event).unwrap());
        let dir = tempfile::tempdir().unwrap();
        let page = Page {
            session: "k3j2h1x9",
            head: "ab12",
            events: &events,
        };
        let html = page.render(&mut Pictures::of(dir.path()));
        let body = html.split_once("<body>").unwrap().1;
        insta::assert_snapshot!(body, @r##"
        <h1>Session k3j2h1x9</h1>
        <dl>
        <dt>Events</dt><dd>2, of which 0 were refused</dd>
        <dt>From</dt><dd>2026-01-31T09:30:00.250Z</dd>
        <dt>To</dt><dd>2026-01-31T09:30:00.250Z</dd>
        <dt>Head</dt><dd><code>ab12</code></dd>
        </dl>
        <h2>Takeovers</h2>
        <ul>
        <li><a href="#e2">2026-01-31T09:30:00.250Z</a> d1: control given back after 1:01<blockquote>logged in</blockquote></li>
        </ul>
        <h2>Everything that happened</h2>
        <table>
        <thead><tr><th>#</th><th>Time</th><th>Who</th><th>Desktop, agent</th><th>What</th></tr></thead>
        <tbody>
        <tr id="e1" class="plain"><td>1</td><td>2026-01-31T09:30:00.250Z</td><td>agent</td><td>d1 <small>1</small></td><td>click at 5,6</td></tr>
        <tr id="e2" class="takeover"><td>2</td><td>2026-01-31T09:30:00.250Z</td><td>person</td><td>d1 <small>1</small></td><td>control given back after 1:01<blockquote>logged in</blockquote></td></tr>
        </tbody>
        </table>
        </body>
        </html>
        "##);
    }
}
