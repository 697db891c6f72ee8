//! What the record says of a desktop.

use handover_control::{Control, Epoch, LeaseId, PauseReason};
use handover_protocol::{DesktopId, HandBack, Refusal, Source};
use handover_store::{NewEvent, Put};
use serde_json::json;

use super::action::Action;
use super::by::By;
use super::running::Running;

fn event(kind: &'static str, desktop: &DesktopId, epoch: Epoch, by: Option<&By>) -> NewEvent {
    let event = NewEvent::new(kind, by.map_or(Source::Host, |by| by.source))
        .desktop(desktop.as_str())
        .epoch(epoch.0);
    let Some(by) = by else {
        return event;
    };
    let event = match &by.actor.agent {
        Some(agent) => event.agent(agent.as_str()),
        None => event,
    };
    event.actor(by.actor.clone())
}

fn acted(event: NewEvent, action: &Action) -> NewEvent {
    let mut event = event;
    event.fields.extend(action.fields.clone());
    event
}

/// An action that was not begun.
pub fn refused(
    desktop: &DesktopId,
    epoch: Epoch,
    by: &By,
    action: &Action,
    refusal: &Refusal,
) -> NewEvent {
    acted(event(action.kind, desktop, epoch, Some(by)), action)
        .field("outcome", "refused")
        .field("code", refusal.code.as_str())
}

/// An action that was begun.
pub fn done(
    desktop: &DesktopId,
    epoch: Epoch,
    running: &Running,
    outcome: &Result<u64, Refusal>,
) -> NewEvent {
    let event = acted(
        event(running.action.kind, desktop, epoch, Some(&running.by)),
        &running.action,
    );
    match outcome {
        Ok(_) => event.field("outcome", "done"),
        Err(refusal) => event
            .field("outcome", "failed")
            .field("code", refusal.code.as_str())
            .field_if("typed", running.action.chars.map(|_| running.typed)),
    }
}

/// Something that another part did or refused.
pub fn other(
    kind: &'static str,
    desktop: &DesktopId,
    epoch: Epoch,
    by: &By,
    fields: serde_json::Map<String, serde_json::Value>,
) -> NewEvent {
    let mut event = event(kind, desktop, epoch, Some(by));
    event.fields.extend(fields);
    event
}

/// A takeover begins.
pub fn start(
    desktop: &DesktopId,
    epoch: Epoch,
    lease: LeaseId,
    by: &By,
    note: Option<&str>,
) -> NewEvent {
    event("takeover_start", desktop, epoch, Some(by))
        .field("leaseId", lease.to_string())
        .field("holder", by.name.as_str())
        .field_if("note", note)
}

/// A takeover has ended.
pub fn end(
    desktop: &DesktopId,
    lease: LeaseId,
    by: Option<&By>,
    hand_back: &HandBack,
    cause: Option<&str>,
) -> NewEvent {
    use handover_protocol::End;
    let kind = match hand_back.end {
        End::Return => "takeover_return",
        End::Cancelled => "takeover_cancelled",
        End::Timeout => "takeover_timeout",
        End::Revoked => "takeover_revoked",
        End::Recovered => "takeover_recovered",
    };
    event(kind, desktop, Epoch(hand_back.epoch), by)
        .field("leaseId", lease.to_string())
        .field("holder", hand_back.holder.as_str())
        .field("heldMs", hand_back.held_ms)
        .field_if("note", hand_back.note.as_deref())
        .field_if("screenshot", hand_back.screenshot.as_deref())
        .field_if("cause", cause)
}

/// Nobody may act.
pub fn paused(desktop: &DesktopId, epoch: Epoch, reason: PauseReason, by: Option<&By>) -> NewEvent {
    event("paused", desktop, epoch, by).field("reason", reason.to_string())
}

/// A pause is over.
pub fn resumed(desktop: &DesktopId, epoch: Epoch, by: Option<&By>) -> NewEvent {
    event("resumed", desktop, epoch, by)
}

/// The display accepted a connection that the host did not make.
pub fn foreign_connection(desktop: &DesktopId, epoch: Epoch) -> NewEvent {
    event("foreign_connection", desktop, epoch, None)
}

/// The host typed something for the person in control.
pub fn secret(desktop: &DesktopId, epoch: Epoch, by: &By) -> NewEvent {
    event("human_intervention", desktop, epoch, Some(by)).field("act", "secret")
}

/// Where the state of control is kept for the next host.
pub fn control_key(desktop: &DesktopId) -> String {
    format!("control/{desktop}")
}

/// The state of control, for the next host.
pub fn control(
    desktop: &DesktopId,
    epoch: Epoch,
    control: Control,
    reason: Option<PauseReason>,
    lease: Option<(LeaseId, &str)>,
) -> Put {
    Put::set(
        control_key(desktop),
        json!({
            "epoch": epoch.0,
            "control": control.to_string(),
            "pauseReason": reason.map(|reason| reason.to_string()),
            "leaseId": lease.map(|(id, _)| id.to_string()),
            "holder": lease.map(|(_, holder)| holder),
            "since": crate::system::clock::wall(),
        }),
    )
}
