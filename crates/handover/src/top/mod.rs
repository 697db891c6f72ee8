//! `handover top`: all sessions of this user on one screen, and the keys to deal with them.
//!
//! `app` is a state machine without a terminal: keys, clicks and news go in; what is to be done comes
//! out, and `draw` shows it. What acts is in `act` and `child`, what touches the terminal in `terminal`
//! and `keyboard`.
//!
//! *Never:* shows a character of anybody else's that a terminal would act on. *Never:* waits for a host
//! before it draws.

mod act;
mod app;
mod child;
mod draw;
mod editor;
mod keyboard;
pub mod once;
mod paint;
mod rows;
pub mod run;
mod terminal;
mod text;

pub use draw::tree::Now;
