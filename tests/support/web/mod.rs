//! People at the web console: a Chromium with their tabs, and the cable between it and the console.

mod cable;
mod chromium;
mod desk;
mod page;

pub use cable::Cable;
pub use chromium::{Chromium, asleep};
pub use desk::Desk;
pub use page::Page;
