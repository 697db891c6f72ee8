//! The `handover` binary: the command line, and the hidden faces of the same program.

mod browser;
mod cli;
mod config;
mod console;
mod lineage;
mod mcp;
mod notify;
mod overview;
mod relay;
mod streams;
mod top;
mod which;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let other_name = args
        .next()
        .is_some_and(|program| cli::has_other_name(&program));
    // A keeper is started often and must not pay for the command line's parser.
    match args.next() {
        Some(word) if !other_name && word == "keeper" => return handover_host::keeper::main(args),
        Some(word) if !other_name && word == notify::SUBCOMMAND => return notify::main(),
        _ => {}
    }
    cli::main()
}
