//! The agent program pi, driven for real: its model is a script of the test.

use crate::support::{Program, receipts};

receipts!(Program::Pi);

#[test]
fn pi_is_the_one_that_the_tests_know() {
    Program::Pi.is("0.73.1");
}
