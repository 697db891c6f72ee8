//! `handover agent …`: starting agents.

mod run;

use clap::Subcommand;

use super::context::Context;
use super::failure::Failure;

/// What to do about agents.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start an agent on a task
    Run(run::Args),
}

/// Runs `handover agent`.
pub fn run(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(args, context),
    }
}
