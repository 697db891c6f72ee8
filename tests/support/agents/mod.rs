//! Real agent programs under Handover, with a script of the test as their model.

pub mod aborting;
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
            while_it_asks,
            when_it_may_not,
            then_abort,
            seen_then_abort,
            then_crash,
            then_host_crash,
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

/// The promises about aborts as tests of one program.
macro_rules! aborts {
    ($program:expr) => {
        $crate::support::aborts!($program, [
            of_tools_that_resist, of_a_program_that_hangs, while_the_model_is_asked, at_the_start,
        ]);
    };
    ($program:expr, [$($scenario:ident),* $(,)?]) => {
        mod abort {
            use super::*;
            $(
                #[test]
                fn $scenario() {
                    $crate::support::aborting::$scenario($program);
                }
            )*
        }
    };
}

pub(crate) use {aborts, receipts};
