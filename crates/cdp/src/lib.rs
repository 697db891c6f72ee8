//! The gate between programs that speak the Chrome DevTools Protocol and the one browser they drive.
//!
//! Pure: no clock, no I/O. Messages go in as bytes, [`Effect`]s come out. Whoever runs it moves the bytes,
//! asks the desktop's arbiter for permits, and says when a takeover begins, is due, and ends.

mod browser;
mod built_in;
mod class;
mod documents;
mod drain;
mod frozen;
mod gate;
mod guard;
mod message;
mod pressed;
mod records;
mod scripts;
mod session;
mod stuck;
mod table;
#[cfg(test)]
mod tests;

pub use class::{Class, class};
pub use gate::{ClientId, Effect, Gate, Held, MAX_IN_FLIGHT, Permit, Verdict};
pub use message::{Refused, UNKNOWN_SESSION};
pub use records::{Records, TooLong};
