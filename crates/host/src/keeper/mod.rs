//! The keeper: a small process that is parent and subreaper of one tree, so that nothing below it
//! can get lost and a crash of the host loses no desktop.

pub mod client;
pub mod wire;

use std::ffi::OsString;
use std::process::ExitCode;

/// The keeper's entry: `handover keeper …`, everything after the word `keeper`.
pub fn main(_args: impl IntoIterator<Item = OsString>) -> ExitCode {
    unimplemented!()
}
