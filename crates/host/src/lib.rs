//! The host: the one process that owns a session and is the authority over its
//! desktops.

pub mod desktop;
pub mod display;
