//! Real agent programs under Handover, with a script of the test as their model.

mod gate;
mod program;
pub mod scenarios;
mod stage;

pub use gate::Gate;
pub use program::{Program, Shell};
pub use stage::Stage;

/// The promises about receipts as tests of one program.
macro_rules! receipts {
    ($program:expr) => {
        $crate::support::receipts!($program, [
            during_a_tool,
            during_text,
            while_waiting,
            while_queued,
            then_abort,
            seen_then_abort,
            then_crash,
            twice,
            a_hundred,
        ]);
    };
    ($program:expr, [$($scenario:ident),* $(,)?]) => {$(
        #[test]
        fn $scenario() {
            $crate::support::scenarios::$scenario($program);
        }
    )*};
}

pub(crate) use receipts;
