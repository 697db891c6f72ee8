//! The operating system as this crate sees it: one small file a concern, each a typed wrapper over
//! the system calls it needs. No policy lives here.

pub mod cgroup;
pub mod clock;
pub mod creds;
pub mod descriptors;
pub mod hang_up;
pub mod interrupt;
pub mod memory;
pub mod prctl;
pub mod process;
pub mod signals;
pub mod users;

// What every server of an attach socket needs, this crate or another program.
pub use handover_protocol::server::{atomic_file, dirs, lock, socket};
