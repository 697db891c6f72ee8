//! What the promise tests share: a session of the real program in directories of its own, the clients
//! that act on it, and the X client that records what its display really received.

mod agent;
#[allow(
    dead_code,
    reason = "each of the two test programs drives some of the agent programs"
)]
mod agents;
mod browser;
mod browser_desktop;
mod clipboard;
mod clock;
mod command;
#[allow(
    dead_code,
    reason = "one of the two test programs has to do with the web console"
)]
mod console;
mod devtools;
mod display;
mod picture;
mod place;
pub mod processes;
mod receiver;
mod record;
mod recorder;
mod relay;
pub mod scripted;
mod seat;
mod session;
mod tmux;
mod typed;
mod viewer;
pub mod web;
mod wire;

pub use agent::Agent;
pub use agents::{Gate, Program, Shell, Stage, aborting, scenarios};
pub(crate) use agents::{aborts, receipts};
pub use browser::Browser;
pub use browser_desktop::{
    acts_until, attached, cdp_socket, click, clicks_until, is_painted, shows, site, with_browser,
};
pub use clipboard::{copy, selection};
pub use clock::{LONG, SHORT, eventually, holds_for, wall_ms};
pub use command::{Outcome, Running};
#[allow(
    unused_imports,
    reason = "one of the two test programs has to do with the web console"
)]
pub use console::{Console, Reply, Tab, farewell};
pub use devtools::DevTools;
pub use display::{Display, cover, own_number};
pub use picture::Picture;
pub use place::Place;
pub use processes::{Signal, alive, command_line, signal, stop};
pub use receiver::{Reaction, Receiver};
pub use record::{Takeover, check_exclusion, takeovers};
pub use recorder::{Recorder, What};
pub use relay::{Relay, all_gone};
pub use seat::{Seat, plain_server};
pub use session::{Holder, Session};
pub use tmux::Tmux;
pub use typed::Typed;
pub use viewer::Viewer;
pub use wire::Wire;
