//! A notice in words.

use handover_host::notices::{About, Notice};
use handover_protocol::Limit;

use crate::cli::duration;
use crate::cli::text::{plain, plain_lines, shortened};

/// The longest title, in characters.
const TITLE: usize = 100;
/// The longest text by an agent in it, in bytes: ntfy makes a file of a message with more than 4096.
const TEXT: usize = 1500;

/// How much it matters, as ntfy counts: 3 is usual and 5 the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// It can wait for the next look.
    Usual = 3,
    /// Somebody waits.
    High = 4,
}

/// What a person reads. No part of it can act on a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// One line.
    pub title: String,
    /// Lines.
    pub text: String,
    /// How much it matters.
    pub priority: Priority,
    /// A picture, by ntfy's name for it.
    pub tag: &'static str,
}

impl Message {
    /// The words for a notice.
    pub fn of(notice: &Notice) -> Self {
        let (session, name) = (&notice.session, plain(&notice.session_name));
        match &notice.about {
            About::RequestHuman {
                request_id,
                desktop,
                agent,
                reason,
                question,
            } => {
                let who = agent
                    .as_ref()
                    .map_or_else(|| "An agent".to_owned(), |agent| format!("Agent {agent}"));
                let mut lines = vec![cut(reason)];
                lines.extend(question.as_deref().map(cut));
                lines.push(match (desktop, question) {
                    (Some(desktop), _) => {
                        format!("handover watch {desktop} --control --session {session}")
                    }
                    (None, Some(_)) => {
                        format!("handover answer {request_id} TEXT --session {session}")
                    }
                    (None, None) => format!("handover list --session {session}"),
                });
                Self {
                    title: shortened(&format!("{who} asks for a person ({name})"), TITLE),
                    text: lines.join("\n"),
                    priority: Priority::High,
                    tag: "raised_hand",
                }
            }
            About::LeaseWarning {
                desktop,
                holder,
                limit,
                left_ms,
            } => {
                let left = duration::show(*left_ms);
                let when = match limit {
                    Limit::Idle => format!("in {left}, unless they do something"),
                    Limit::Maximum => format!("in {left}: the time is over"),
                };
                Self {
                    title: shortened(
                        &format!("Control of {desktop} is about to end ({name})"),
                        TITLE,
                    ),
                    text: format!("{} loses it {when}", shortened(holder, TITLE)),
                    priority: Priority::Usual,
                    tag: "hourglass",
                }
            }
        }
    }
}

/// Text by an agent, harmless and not too long.
fn cut(text: &str) -> String {
    let mut text = plain_lines(text.trim());
    if text.len() > TEXT {
        let mut end = TEXT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
pub mod tests {
    use handover_protocol::{RequestId, Timestamp};

    use super::*;

    /// A notice for tests.
    pub fn request() -> Notice {
        Notice {
            session: "s1".into(),
            session_name: "shop\u{1b}[2J".to_owned(),
            at: Timestamp(0),
            about: About::RequestHuman {
                request_id: RequestId("r1".to_owned()),
                desktop: Some("d1".into()),
                agent: Some("a1".into()),
                reason: "log in\u{202e} <b>now</b>".to_owned(),
                question: None,
            },
        }
    }

    fn shown(about: About) -> String {
        let message = Message::of(&Notice { about, ..request() });
        format!("{}\n{}", message.title, message.text)
    }

    #[test]
    fn words() {
        insta::assert_snapshot!(shown(request().about), @r"
        Agent a1 asks for a person (shop\u{1b}[2J)
        log in\u{202e} <b>now</b>
        handover watch d1 --control --session s1
        ");
        let question = About::RequestHuman {
            request_id: RequestId("r2".to_owned()),
            desktop: None,
            agent: None,
            reason: "a choice".to_owned(),
            question: Some("red or blue?".to_owned()),
        };
        insta::assert_snapshot!(shown(question), @r"
        An agent asks for a person (shop\u{1b}[2J)
        a choice
        red or blue?
        handover answer r2 TEXT --session s1
        ");
        let warning = |limit| About::LeaseWarning {
            desktop: "d1".into(),
            holder: "ada (pid 7)".to_owned(),
            limit,
            left_ms: 15_000,
        };
        insta::assert_snapshot!(shown(warning(Limit::Idle)), @r"
        Control of d1 is about to end (shop\u{1b}[2J)
        ada (pid 7) loses it in 15 s, unless they do something
        ");
        insta::assert_snapshot!(shown(warning(Limit::Maximum)), @r"
        Control of d1 is about to end (shop\u{1b}[2J)
        ada (pid 7) loses it in 15 s: the time is over
        ");
    }

    #[test]
    fn it_fits_into_what_ntfy_takes() {
        let text = "\u{1f600}".repeat(1000);
        let message = Message::of(&Notice {
            about: About::RequestHuman {
                request_id: RequestId("r1".to_owned()),
                desktop: None,
                agent: None,
                reason: text.clone(),
                question: Some(text.clone()),
            },
            session_name: text,
            ..request()
        });
        assert!(message.text.len() < 4096, "{}", message.text.len());
        assert!(message.title.len() < 512, "{}", message.title.len());
    }
}
