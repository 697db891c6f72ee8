//! The host's eyes on a display: connections, screenshots and the X side.

pub mod connect;
pub mod picture;
pub mod screen;
pub mod upstream;
pub mod x11;

pub use connect::{ConnectError, Connected, connect};
pub use picture::Screenshot;
pub use screen::{CaptureError, Screen, SizeChanges};
pub use upstream::{Address, Stream, Upstream};
pub use x11::{Additions, Managed, X11, X11Error};
