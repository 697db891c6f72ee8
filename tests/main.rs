//! What Handover promises, proven on the real program: every test starts real hosts, displays and
//! clients in directories of its own. One file a promise.

#[allow(
    dead_code,
    unused_imports,
    reason = "the promises that use the rest follow"
)]
mod support;

mod drain;
mod nothing_stays_pressed;
mod only_one_side_acts;
mod watchers;
