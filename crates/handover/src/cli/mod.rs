//! The command line. Each command has a file of its own, with its arguments and what it does.

mod abort;
mod agent;
mod answer;
mod browser;
mod completions;
mod config;
mod confirm;
mod console;
pub mod context;
mod desktop;
pub mod discover;
mod doctor;
mod down;
pub mod duration;
mod ended;
pub mod failure;
mod follow;
#[cfg(test)]
mod gates;
mod hang_up;
mod host;
mod links;
pub mod list;
mod locate;
mod log;
mod man;
mod mcp;
mod outcome;
mod pause;
mod ready;
mod record;
mod relay;
pub mod report;
mod result;
pub mod session;
mod sessions;
mod setup;
pub mod steer;
mod stop_all;
pub mod story;
pub mod style;
mod table;
mod takeover;
pub mod text;
mod top;
mod up;
mod usage;
mod verify;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::context::{Context, GlobalArgs};
use self::failure::Failure;

/// Supervise AI agents on this machine: watch and take over the desktops they drive, and hand
/// them back with a record of what happened.
#[derive(Debug, Parser)]
#[command(
    name = "handover",
    version,
    propagate_version = false,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a session for this project directory
    Up(host::Options),
    /// Be the host of a session, in the foreground
    Host(host::Args),
    /// End a session and everything it started
    Down(down::Args),
    /// List the sessions of this user
    Sessions(sessions::Args),
    /// List desktops, agents and open requests of a session
    List(list::Args),
    /// Make, use and end desktops
    #[command(subcommand)]
    Desktop(desktop::Command),
    /// Drive the browser of a desktop, through the desktop's gate
    #[command(subcommand)]
    Browser(browser::Command),
    /// Watch a desktop, or take control of it
    Watch(watch::Args),
    /// Who has control of a desktop, and giving it back
    #[command(subcommand)]
    Takeover(takeover::Command),
    /// Let nobody act on a desktop
    Pause(pause::Args),
    /// End a pause
    Resume(pause::Args),
    /// Pause every desktop and abort every agent
    StopAll,
    /// Start agents
    #[command(subcommand)]
    Agent(agent::Command),
    /// Answer an agent's question
    Answer(answer::Args),
    /// Send a message into a running agent
    Steer(steer::Args),
    /// End an agent and those it started
    Abort(abort::Args),
    /// Print what an agent came to
    Result(result::Args),
    /// Print what one agent or all do, as it happens
    Follow(follow::Args),
    /// Print the record of a session
    Log(log::Args),
    /// Write the record of a session as a web page
    Report(report::Args),
    /// Check that the record of a session was not altered
    Verify(verify::Args),
    /// Serve the web console on this machine
    Console(console::Args),
    /// See all sessions at once, and steer them
    Top(top::Args),
    /// Check that this machine has what is needed
    Doctor,
    /// Be the tools of one agent, over MCP on standard input and output
    Mcp(mcp::Args),
    /// Pass an MCP server on, with its tools behind the gate of a desktop
    Relay(relay::Args),
    /// Make an agent program's own configuration start our MCP servers
    Setup(setup::Args),
    /// Check or show the configuration
    #[command(subcommand)]
    Config(config::Command),
    /// Make swarm-list, swarm-steer, swarm-abort, swarm-result and swarm-attach in a directory
    InstallLinks(links::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Print the manual page
    Man(man::Args),
}

impl Command {
    /// Whether its standard output belongs to a protocol, so that nothing else may be written there.
    fn speaks_a_protocol(&self) -> bool {
        matches!(
            self,
            Self::Mcp(_) | Self::Relay(_) | Self::Browser(browser::Command::Mcp(_))
        )
    }
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    run(links::meant(std::env::args_os().collect()))
}

/// Whether the program was started by one of its other names, which say the command.
pub fn has_other_name(program: &std::ffi::OsStr) -> bool {
    links::command(program).is_some()
}

fn run(args: Vec<OsString>) -> ExitCode {
    // Commands that have something to do first catch interrupts themselves. If it fails, the signal ends them.
    let _ = handover_host::system::interrupt::end_with_status();
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error, &args),
    };
    let context = Context::new(cli.global);
    // Tokens pass through this process: no other one may read its memory. Where the kernel does
    // not allow it, nothing is worse than before.
    let _ = handover_host::system::prctl::forbid_dumps();
    let speaks_a_protocol = cli.command.speaks_a_protocol();
    let done = dispatch(cli.command, &context)
        .map_err(|failure| failure.with_way_to_desktop(|| usage::way_to_desktop(&args)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if speaks_a_protocol => failure.report_aside(context.json),
        Err(failure) => failure.report(context.json),
    }
}

fn dispatch(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::Up(options) => up::run(&options, context),
        Command::Host(args) => host::run(args, context),
        Command::Down(args) => down::run(args, context),
        Command::Sessions(args) => sessions::run(&args, context),
        Command::List(args) => list::run(&args, context),
        Command::Desktop(command) => desktop::run(command, context),
        Command::Browser(command) => browser::run(command, context),
        Command::Watch(args) => watch::run(args, context),
        Command::Takeover(command) => takeover::run(command, context),
        Command::Pause(args) => pause::run(args, handover_protocol::Method::ControlPause, context),
        Command::Resume(args) => {
            pause::run(args, handover_protocol::Method::ControlResume, context)
        }
        Command::StopAll => stop_all::run(context),
        Command::Agent(command) => agent::run(command, context),
        Command::Answer(args) => answer::run(args, context),
        Command::Steer(args) => steer::run(args, context),
        Command::Abort(args) => abort::run(args, context),
        Command::Result(args) => result::run(args, context),
        Command::Follow(args) => follow::run(args, context),
        Command::Log(args) => log::run(args, context),
        Command::Report(args) => report::run(args, context),
        Command::Verify(args) => verify::run(args, context),
        Command::Console(args) => console::run(args, context),
        Command::Top(args) => top::run(args, context),
        Command::Doctor => doctor::run(context),
        Command::Mcp(args) => mcp::run(args, context),
        Command::Relay(args) => relay::run(args, context),
        Command::Setup(args) => setup::run(&args, context),
        Command::Config(command) => config::run(command, context),
        Command::InstallLinks(args) => links::run(&args, context),
        Command::Completions(args) => completions::run(&args, context),
        Command::Man(args) => man::run(&args, context),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_may_stand_before_or_after_text_and_dashes_end_them() {
        let parse = |words: &str| Cli::try_parse_from(words.split(' '));
        assert!(
            parse("handover --json desktop click 1 2")
                .unwrap()
                .global
                .json
        );
        assert!(
            parse("handover desktop click 1 2 --json")
                .unwrap()
                .global
                .json
        );
        let cli = parse("handover desktop type hello --json").unwrap();
        assert!(cli.global.json);
        let cli = parse("handover desktop type -- --json").unwrap();
        assert!(!cli.global.json);
        assert!(parse("handover desktop move -5 -7").is_ok());
        assert!(parse("handover desktop launch -- xterm -e top").is_ok());
        assert!(parse("handover desktop launch xterm -e top").is_err());
    }
}
