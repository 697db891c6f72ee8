//! The host: the one process that owns a session and is the authority over its
//! desktops.

pub mod agents;
pub mod attach;
pub mod browser;
pub mod callers;
pub mod desktop;
pub mod desktops;
pub mod display;
pub mod heads;
pub mod host;
pub mod keeper;
pub mod manifest;
pub mod notices;
pub mod record;
pub mod requests;
pub mod served;
pub mod session;
pub mod sweep;
pub mod system;
pub mod viewer;
pub mod xvnc;

pub use host::{HostError, HostOptions, Ready, run};
pub use manifest::discover;
