//! The `handover` binary: the command line, and the hidden faces of the same program.

mod browser;
mod cli;
mod lineage;
mod mcp;
mod relay;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let other_name = args
        .next()
        .is_some_and(|program| cli::has_other_name(&program));
    // A keeper is started often and must not pay for the command line's parser.
    if !other_name && args.next().is_some_and(|word| word == "keeper") {
        return handover_host::keeper::main(args);
    }
    cli::main()
}
