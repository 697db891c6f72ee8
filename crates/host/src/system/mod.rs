//! The operating system as this crate sees it: one small file a concern, each a typed wrapper over
//! the system calls it needs. No policy lives here.

pub mod atomic_file;
pub mod cgroup;
pub mod clock;
pub mod creds;
pub mod dirs;
pub mod lock;
pub mod prctl;
pub mod process;
pub mod signals;
pub mod socket;
pub mod users;
