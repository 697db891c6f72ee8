//! What Handover promises, proven on the real program: every test starts real hosts, displays and
//! clients in directories of its own. One file a promise.

#[allow(
    dead_code,
    unused_imports,
    reason = "the promises that use the rest follow"
)]
mod support;

mod agents_speak_mcp;
mod controller_ends;
mod display_ends;
mod drain;
mod host_ends;
mod lease;
mod nothing_stays_pressed;
mod only_one_side_acts;
mod watchers;
