//! What all sessions of this user are doing: a live model, fed by a connection to each host.
//!
//! [`Overview`] is a state machine in sans-IO shape: told what hosts answered and announced ([`News`]), and
//! when, it keeps what there is to see, within bounds. [`watch`] is what feeds it: it looks for hosts,
//! connects to each of them and follows its record.
//!
//! *Never:* knows more than the attach socket tells, or keeps anything beyond the process.

mod clean;
mod feed;
mod host;
mod model;
mod order;
mod receipts;
mod session;
mod story;
#[cfg(test)]
pub mod testing;

pub use clean::{clean, clean_lines};
pub use feed::{Feed, watch};
pub use model::{News, Overview, Tally};
pub use receipts::Receipt;
pub use session::{Link, Session};
pub use story::{Line, Of, Tone, Whom};
