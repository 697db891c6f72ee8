//! One desktop: a task that owns its arbiter and the only connection by which
//! input reaches the display.

pub mod view;
