//! What the web console promises to people, proven in a real browser before a real host.

mod agents;
mod control;
mod everywhere;
mod keeping;
mod links;
mod pressed;
mod record;
mod sharing;
mod silence;
mod stopping;
