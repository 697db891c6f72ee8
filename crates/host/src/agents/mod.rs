//! What surrounds the session's agents: their record, their processes, the people they ask, and the
//! news from desktops that they are told.
//!
//! [`environment`] is the manager's view of the host. A program is started by [`launch`] below a keeper
//! of its own that ends with the host, and followed by [`tree`]; what a dead host's keepers could not
//! end is ended by [`leftovers`]. [`news`] of takeovers and answers are put in words by [`words`] and told to
//! the agents by [`telling`]; [`served`] is what the attach socket sees of them.
//!
//! Invariants:
//! - what runs below an agent's keeper is known as that agent before it runs;
//! - no agent outlives its host unseen;
//! - telling an agent something never holds up a desktop or a person.

mod environment;
mod launch;
mod leftovers;
mod news;
mod record;
mod served;
mod telling;
mod tree;
mod words;

pub use environment::{AgentHost, Parts};
pub use leftovers::end_leftovers;
pub use news::{News, Newsroom};
pub use served::Agents;
pub use telling::tell;
