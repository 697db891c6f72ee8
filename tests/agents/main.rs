//! What Handover promises about agents, proven on every agent program that it drives. The programs are
//! real; their model is a script of the tests.

#[path = "../support/mod.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "shared with the other test program, which needs all of it"
)]
mod support;

mod claude;
mod codex;
mod errors;
mod gemini;
mod programs;
mod setup;
mod subagents;
mod tools;
mod when;
