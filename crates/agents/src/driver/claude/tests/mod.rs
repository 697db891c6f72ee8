//! The driver against what Claude Code once said, and against what it might say.

mod anything;
mod odd;
mod transcripts;

use handover_protocol::{AgentStatus, SteerState};
use serde_json::{Value, json};

use crate::driver::Effect;
use crate::driver::replay::{Stage, steer, task};

const ALL_THE_WAY: [SteerState; 4] = [
    SteerState::Queued,
    SteerState::Inserted,
    SteerState::Sent,
    SteerState::Answered,
];

/// UUIDs, which a steer's message is called by as they are.
const S: &str = "00000000-0000-4000-8000-000000000001";
const S2: &str = "00000000-0000-4000-8000-000000000002";

/// A driver whose program was started and has said nothing.
fn begun() -> Stage {
    Stage::begin("claude", task("do it", &[]), |_| None)
}

/// A driver in its first turn.
fn working() -> Stage {
    let mut stage = begun();
    initialized(&mut stage);
    stage.say(&json!({"type": "system", "subtype": "session_state_changed", "state": "running"}));
    stage.say(&init());
    stage
}

fn initialized(stage: &mut Stage) -> Vec<Value> {
    reply(
        stage,
        "initialize",
        json!({"claude_code_version": "2.1.332"}),
    )
}

fn init() -> Value {
    let capabilities = [
        "interrupt_receipt_v1",
        "interrupt_cancel_queued_v1",
        "msg_lifecycle_v1",
        "request_marker_lists_v1",
    ];
    json!({
        "type": "system", "subtype": "init",
        "claude_code_version": "2.1.332", "capabilities": capabilities,
    })
}

fn reply(stage: &mut Stage, request: &str, response: Value) -> Vec<Value> {
    let response = json!({"subtype": "success", "request_id": request, "response": response});
    stage.say(&json!({"type": "control_response", "response": response}))
}

fn lifecycle(stage: &mut Stage, uuid: &str, state: &str) {
    stage.say(&json!({"type": "command_lifecycle", "command_uuid": uuid, "state": state}));
}

fn requesting(stage: &mut Stage, uuids: &[&str]) {
    stage.say(&json!({
        "type": "system", "subtype": "status", "status": "requesting",
        "user_message_uuids": uuids,
    }));
}

/// A model request with these messages, and the beginning of its answer.
fn sent(stage: &mut Stage, uuids: &[&str]) {
    requesting(stage, uuids);
    stage.say(&json!({
        "type": "stream_event", "parent_tool_use_id": null, "event": {"type": "message_start"},
    }));
}

fn result(stage: &mut Stage, text: &str, uuids: &[&str]) {
    stage.say(&json!({
        "type": "result", "subtype": "success", "is_error": false, "result": text,
        "terminal_reason": "completed", "user_message_uuids": uuids,
    }));
}

fn idle(stage: &mut Stage) {
    stage.say(&json!({"type": "system", "subtype": "session_state_changed", "state": "idle"}));
}

fn put(stage: &mut Stage, id: &str) -> Vec<Value> {
    stage.act(|driver, out| driver.steer(steer(id, "listen"), out))
}

fn interrupt(stage: &mut Stage) -> Vec<Value> {
    stage.act(|driver, out| driver.interrupt(out))
}
