//! `handover takeover status|return|revoke`.

use clap::Subcommand;
use handover_protocol::{
    ControlChangeParams, ControlReturnParams, ControlReturnResult, ControlStatusParams,
    ControlStatusResult, DesktopId, End, HandBack, Method, PauseReason, ReturnReason,
};

use super::context::{Context, block_on};
use super::failure::Failure;
use super::session::Session;
use super::table::Table;
use super::text::{plain, shortened};
use super::{duration, list};

/// What to do about a takeover.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Who has control of a desktop
    Status {
        /// The desktop, such as d1; not needed if the session has one
        desktop: Option<DesktopId>,
    },
    /// Give control back to the agents
    Return {
        /// The desktop, such as d1; not needed if the session has one
        desktop: Option<DesktopId>,
        /// What the agents should know
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// The step was not done
        #[arg(long)]
        cancelled: bool,
    },
    /// End a takeover, also another person's
    Revoke {
        /// The desktop, such as d1; not needed if the session has one
        desktop: Option<DesktopId>,
        /// Even if another person is in control
        #[arg(long)]
        force: bool,
    },
}

/// Runs `handover takeover`.
pub fn run(command: Command, context: &Context) -> Result<(), Failure> {
    block_on(async {
        let session = Session::open(context).await?;
        match command {
            Command::Status { desktop } => {
                let params = ControlStatusParams { desktop };
                let status: ControlStatusResult =
                    session.call(Method::ControlStatus, &params).await?;
                context.print(&status, render_status)
            }
            Command::Return {
                desktop,
                note,
                cancelled,
            } => {
                let reason = cancelled.then_some(ReturnReason::Cancelled);
                let params = ControlReturnParams {
                    desktop,
                    note,
                    reason,
                    ..Default::default()
                };
                let result: ControlReturnResult =
                    session.call(Method::ControlReturn, &params).await?;
                context.print(&result, render_return)
            }
            Command::Revoke { desktop, force } => {
                let params = ControlChangeParams {
                    desktop,
                    force: force.then_some(true),
                };
                let status: ControlStatusResult =
                    session.call(Method::ControlRevoke, &params).await?;
                context.print(&status, render_status)
            }
        }
    })
}

fn render_return(result: &ControlReturnResult) -> String {
    let mut text = format!(
        "control returned ({}) after {}; epoch {}\n",
        end(result.reason),
        duration::show(result.held_ms),
        result.epoch
    );
    if let Some(screenshot) = &result.screenshot {
        text.push_str(&format!("  screenshot {}\n", plain(screenshot)));
    }
    text
}

/// A desktop's status for people.
pub fn render_status(status: &ControlStatusResult) -> String {
    let control = list::control(status.control, status.phase);
    let mut text = format!("{}: {control}, epoch {}", status.desktop, status.epoch);
    if let Some(reason) = status.pause_reason {
        text.push_str(match reason {
            PauseReason::Requested => " (a person asked for it; `handover resume` ends it)",
            PauseReason::ForeignConnection => {
                " (a program connected to the display past the gate; `handover resume` ends it)"
            }
            PauseReason::DisplayUnavailable => " (the display does not answer)",
            PauseReason::DesktopGone => " (the display has ended)",
        });
    }
    text.push('\n');
    if let Some(lease) = &status.lease {
        let viewer = match &lease.viewer {
            Some(viewer) if lease.viewer_connected => format!(", viewer {viewer}"),
            Some(viewer) => format!(", viewer {viewer} not connected"),
            None => String::new(),
        };
        let private = if lease.private { ", private" } else { "" };
        text.push_str(&format!(
            "  held by {} since {}, {} left{viewer}{private}\n",
            plain(&lease.holder),
            lease.since,
            duration::show(lease.expires_in_ms)
        ));
    }
    for request in &status.requests {
        let reason = shortened(&request.reason, 200);
        text.push_str(&format!("  request {}: {reason}\n", request.request_id));
    }
    if let Some(hand_back) = &status.last_hand_back {
        text.push_str("  last hand-back:\n");
        text.push_str(&render_hand_back(hand_back, "    "));
    }
    text
}

/// A hand-back for people; every line starts with `indent`.
pub fn render_hand_back(hand_back: &HandBack, indent: &str) -> String {
    let mut table = Table::plain();
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("end", end(hand_back.end).to_owned());
    row("holder", plain(&hand_back.holder));
    row("held", duration::show(hand_back.held_ms));
    row("epoch", hand_back.epoch.to_string());
    if let Some(note) = &hand_back.note {
        row("note", plain(note));
    }
    let screenshot = hand_back
        .screenshot
        .as_deref()
        .map_or("none".to_owned(), plain);
    row("screenshot", screenshot);
    for window in &hand_back.windows_opened {
        row("opened", shortened(&window.title, 80));
    }
    for window in &hand_back.windows_closed {
        row("closed", shortened(&window.title, 80));
    }
    table.render(indent)
}

/// The word for an end, as on the wire.
pub fn end(end: End) -> &'static str {
    match end {
        End::Return => "return",
        End::Cancelled => "cancelled",
        End::Timeout => "timeout",
        End::Revoked => "revoked",
        End::Recovered => "recovered",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn status_as_a_person_sees_it() {
        let status: ControlStatusResult = serde_json::from_value(json!({
            "desktop": "d1", "control": "paused", "phase": "steady", "epoch": 5,
            "pauseReason": "foreign_connection",
            "lastHandBack": {
                "end": "return", "holder": "ada (pid 7)", "heldMs": 42_400,
                "note": "logged in\u{1b}[2J", "epoch": 5, "screenshot": "/state/evidence/1.png",
                "windowsOpened": [{"id": 1, "title": "Inbox", "x": 0, "y": 0, "width": 10,
                                   "height": 10, "focused": true}],
                "windowsClosed": []
            },
            "requests": [{"requestId": "r1", "desktop": "d1", "reason": "log in", "state": "open",
                          "since": "2026-01-31T09:30:00.250Z"}]
        }))
        .unwrap();
        insta::assert_snapshot!(render_status(&status), @r"
        d1: paused, epoch 5 (a program connected to the display past the gate; `handover resume` ends it)
          request r1: log in
          last hand-back:
            end         return
            holder      ada (pid 7)
            held        42 s
            epoch       5
            note        logged in\u{1b}[2J
            screenshot  /state/evidence/1.png
            opened      Inbox
        ");
    }

    #[test]
    fn a_lease_as_a_person_sees_it() {
        let status: ControlStatusResult = serde_json::from_value(json!({
            "desktop": "d1", "control": "human", "phase": "steady", "epoch": 4,
            "lease": {"leaseId": "l-1", "holder": "ada (pid 7)",
                      "since": "2026-01-31T09:30:00.250Z", "expiresInMs": 27_500,
                      "viewer": "v1", "private": true}
        }))
        .unwrap();
        insta::assert_snapshot!(render_status(&status), @"
        d1: human, epoch 4
          held by ada (pid 7) since 2026-01-31T09:30:00.250Z, 27 s left, viewer v1 not connected, private
        ");
    }

    #[test]
    fn a_return_as_a_person_sees_it() {
        let result = ControlReturnResult {
            reason: End::Return,
            held_ms: 61_000,
            screenshot: Some("/state/evidence/1.png".to_owned()),
            epoch: 4,
        };
        insta::assert_snapshot!(render_return(&result), @"
        control returned (return) after 1:01; epoch 4
          screenshot /state/evidence/1.png
        ");
    }
}
