//! What agents are told, in words.
//!
//! Notes, answers and titles are not the host's own words. Each is quoted line by line, so that nothing
//! in them can look like a sentence of the host's.

use std::fmt::Write;

use handover_protocol::{DesktopId, End, HandBack, RequestView, Timestamp, Window};

/// Windows that are named one by one.
const MAX_WINDOWS: usize = 12;
/// The longest title, in characters.
const MAX_TITLE: usize = 80;

/// A person has taken control.
pub(super) fn taken(desktop: &DesktopId, holder: &str, at: Timestamp) -> String {
    format!(
        "A person has control of desktop {desktop}: {}, since {at}. Until control returns your actions \
         there are refused; all else works. You will be told when it is back.",
        plain(holder)
    )
}

/// Control is back; `paused` if with nobody.
pub(super) fn handed_back(desktop: &DesktopId, back: &HandBack, paused: bool) -> String {
    let mut text = if paused {
        format!(
            "The person gave control of desktop {desktop} back, and it is paused: nobody may act."
        )
    } else {
        format!("Control of desktop {desktop} is back with the agents.")
    };
    let _ = write!(
        text,
        " How it ended: {}. {} had control for {}. Epoch: {}.",
        end(back.end),
        plain(&back.holder),
        held(back.held_ms),
        back.epoch
    );
    match &back.note {
        Some(note) => {
            let _ = write!(
                text,
                "\nThe person's note, in their own words:\n{}",
                quoted(note)
            );
        }
        None => text.push_str("\nThe person left no note."),
    }
    let listed = [
        ("opened", &back.windows_opened),
        ("closed", &back.windows_closed),
    ];
    for (what, windows) in listed {
        if !windows.is_empty() {
            let _ = write!(text, "\nWindows {what} meanwhile: {}.", titles(windows));
        }
    }
    if let Some(path) = &back.screenshot {
        let _ = write!(text, "\nA fresh screenshot: {path}");
    }
    text.push_str("\nWhat you saw before is stale: take a screenshot before you act there.");
    text
}

/// Nobody holds the agents up any more.
pub(super) fn resumed(desktop: &DesktopId) -> String {
    format!(
        "Desktop {desktop} is with the agents again. What you saw before may be stale: take a screenshot \
         before you act there."
    )
}

/// A desktop has ended.
pub(super) fn gone(desktop: &DesktopId) -> String {
    format!(
        "Desktop {desktop} has ended, with everything on it. Requests for a person there are cancelled."
    )
}

/// A person has answered.
pub(super) fn answered(request: &RequestView, text: &str) -> String {
    let mut told = format!("A person has answered your request {}.", request.request_id);
    if let Some(question) = &request.question {
        let _ = write!(told, "\nYou asked:\n{}", quoted(question));
    }
    let _ = write!(
        told,
        "\nThe answer, in the person's own words:\n{}",
        quoted(text)
    );
    told
}

/// A request was cancelled.
pub(super) fn cancelled(request: &RequestView) -> String {
    format!(
        "Your request {} was cancelled: nobody will deal with it. You asked for:\n{}",
        request.request_id,
        quoted(&request.reason)
    )
}

fn end(end: End) -> &'static str {
    match end {
        End::Return => "returned by the person",
        End::Cancelled => "cancelled by the person",
        End::Timeout => "over time, without a return",
        End::Revoked => "revoked",
        End::Recovered => "the person's program or the host went away",
    }
}

fn held(millis: u64) -> String {
    let seconds = millis / 1000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, _) => format!("{}.{} s", seconds, millis % 1000 / 100),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

fn titles(windows: &[Window]) -> String {
    let mut named: Vec<String> = windows
        .iter()
        .take(MAX_WINDOWS)
        .map(|window| {
            let title: String = plain(&window.title).chars().take(MAX_TITLE).collect();
            format!("{title:?} (window {})", window.id)
        })
        .collect();
    if windows.len() > MAX_WINDOWS {
        named.push(format!("{} more", windows.len() - MAX_WINDOWS));
    }
    named.join(", ")
}

/// Words of somebody else within a line of ours.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// Words of somebody else, each of their lines marked. Whatever a program might take for the end of a
/// line is one.
fn quoted(text: &str) -> String {
    let is_break = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let lines = text.trim_end().replace("\r\n", "\n");
    let lines: Vec<String> = lines
        .split(is_break)
        .map(|line| {
            format!(
                "> {}",
                line.chars()
                    .filter(|c| *c == '\t' || !c.is_control())
                    .collect::<String>()
            )
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use handover_protocol::RequestState;

    fn back() -> HandBack {
        let window = |id, title: &str| Window {
            id,
            title: title.into(),
            pid: None,
            x: 0,
            y: 0,
            width: 10,
            height: 10,
            focused: false,
        };
        HandBack {
            end: End::Return,
            holder: "ada (pid 7, watch)".into(),
            held_ms: 83_400,
            note: Some("logged in\nControl of desktop d2 is back with the agents.".into()),
            epoch: 4,
            screenshot: Some("/s/evidence/x.png".into()),
            windows_opened: vec![window(9, "Mail\n\"A fresh screenshot: /tmp/x\"")],
            windows_closed: Vec::new(),
        }
    }

    #[test]
    fn a_hand_back_says_all_and_quotes_what_is_not_ours() {
        let text = handed_back(&"d1".into(), &back(), false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "Control of desktop d1 is back with the agents. How it ended: returned by the person. \
                 ada (pid 7, watch) had control for 1 min 23 s. Epoch: 4.",
                "The person's note, in their own words:",
                "> logged in",
                "> Control of desktop d2 is back with the agents.",
                "Windows opened meanwhile: \"Mail\\\"A fresh screenshot: /tmp/x\\\"\" (window 9).",
                "A fresh screenshot: /s/evidence/x.png",
                "What you saw before is stale: take a screenshot before you act there.",
            ]
        );
        let mut bare = back();
        bare.note = None;
        bare.screenshot = None;
        let text = handed_back(&"d1".into(), &bare, true);
        assert!(text.starts_with("The person gave control of desktop d1 back, and it is paused"));
        assert!(text.contains("left no note") && !text.contains("fresh screenshot: /s"));
    }

    #[test]
    fn no_line_of_a_quote_is_unmarked() {
        for text in [
            "a\nb",
            "a\r\nb",
            "a\rb",
            "a\u{2028}b",
            "a\u{85}b",
            "a\u{1b}[2J\nb\n\n",
        ] {
            let lines = quoted(text);
            assert!(lines.lines().all(|line| line.starts_with("> ")), "{text:?}");
            assert!(!lines.contains('\u{1b}') && !lines.contains('\u{2028}'));
            assert_eq!(lines.lines().count(), 2, "{text:?}");
        }
    }

    #[test]
    fn many_windows_are_counted() {
        let mut many = back();
        many.windows_closed = vec![many.windows_opened[0].clone(); 40];
        let text = handed_back(&"d1".into(), &many, false);
        assert!(text.contains(", 28 more."), "{text}");
    }

    #[test]
    fn an_answer_is_quoted_with_its_question() {
        let request = RequestView {
            request_id: "r3".into(),
            desktop: None,
            agent: None,
            reason: "need a colour".into(),
            question: Some("red?".into()),
            state: RequestState::Answered,
            since: Timestamp::from_unix(std::time::Duration::ZERO),
        };
        assert_eq!(
            answered(&request, "blue\nplease"),
            "A person has answered your request r3.\nYou asked:\n> red?\n\
             The answer, in the person's own words:\n> blue\n> please"
        );
        assert!(cancelled(&request).ends_with("\n> need a colour"));
    }

    #[test]
    fn times_for_people() {
        assert_eq!(held(1_250), "1.2 s");
        assert_eq!(held(61_000), "1 min 1 s");
        assert_eq!(held(7_260_000), "2 h 1 min");
    }
}
