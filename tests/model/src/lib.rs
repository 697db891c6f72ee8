//! A scripted model server on loopback, for tests with real agent programs.
//!
//! It speaks the protocols that agent programs speak to their models: OpenAI chat completions and
//! responses, Anthropic messages, Gemini. What it answers is scripted by the test; what it was asked
//! is on record, and that record decides what a model has really seen:
//!
//! ```no_run
//! use handover_model::{Hold, ModelServer, Reply};
//! use std::time::Duration;
//!
//! let model = ModelServer::start();
//! let hold = Hold::new();
//! model.script("task-1", [
//!     Reply::shell("echo hello"),
//!     Reply::text("half a sentence ").hold(&hold).say("and the rest"),
//! ]);
//! // … start an agent program with `model.url()` as its provider and "task-1" in its prompt …
//! assert!(hold.reached(Duration::from_secs(30)), "the program streams the second reply");
//! hold.release();
//! assert!(model.saw("task-1"));
//! ```
//!
//! Requests that offer no tools (titles, summaries, checks of a quota) are side requests: they get a
//! short answer, never take a reply from a script and do not count as seen.

mod api;
mod body;
mod hold;
mod log;
mod reply;
mod request;
mod route;
mod script;
mod server;
mod shell;

pub use api::Api;
pub use hold::Hold;
pub use reply::Reply;
pub use request::{Message, Outcome, Request, Role};
pub use server::ModelServer;
