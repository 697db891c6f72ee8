//! The programs are there in the versions that these tests were written for.

use crate::support::Program;

#[test]
fn each_program_runs_in_its_version() {
    Program::Codex.is("0.171.0");
    Program::Claude.is("2.1.332");
    Program::Gemini.is("0.61.0");
}
