//! The RFB protocol as Handover needs it, without sockets, clocks or globals.
//!
//! Every part is sans-IO: it is given bytes in pieces of any size and answers with messages, bytes to write, or a
//! typed error. The host moves the bytes. Nothing here panics on what the other side sends, and every buffer that
//! the other side can fill has a limit.
#![forbid(unsafe_code)]

pub mod clipboard;
pub mod encodings;
pub mod frame;
pub mod framing;
pub mod gate;
pub mod handshake;
pub mod input;
pub mod keys;
pub mod ledger;
pub mod pixel_format;
pub mod typing;
pub mod vncauth;

pub use input::InputMessage;
pub use ledger::Ledger;
pub use pixel_format::PixelFormat;
