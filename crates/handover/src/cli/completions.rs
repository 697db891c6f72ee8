//! `handover completions SHELL`.

use clap::CommandFactory;
use clap_complete::Shell;

use super::context::{self, Context, print_json};
use super::failure::Failure;

/// Arguments of `handover completions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Runs `handover completions`.
pub fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut super::Cli::command(),
        "handover",
        &mut script,
    );
    if context.json {
        return print_json(&serde_json::json!({ "script": String::from_utf8_lossy(&script) }));
    }
    context::write(&script)
}
