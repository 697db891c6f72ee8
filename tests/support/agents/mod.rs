//! Real agent programs under Handover, with a script of the test as their model.

mod program;

pub use program::Program;
