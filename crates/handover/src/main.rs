//! The `handover` binary: the command line, and the hidden faces of the same program.

mod cli;
mod mcp;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    // A keeper is started often and must not pay for the command line's parser.
    if args.by_ref().nth(1).is_some_and(|word| word == "keeper") {
        return handover_host::keeper::main(args);
    }
    cli::main()
}
