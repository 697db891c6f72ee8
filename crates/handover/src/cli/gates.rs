//! No command goes past the gate: each has declared here what it asks of a host, and so which gates
//! it passes. A new command without an entry fails the test.

use clap::CommandFactory;
use handover_protocol::{Gate, Method};

use super::Cli;

/// The methods that each command calls, besides `hello` and those that only look.
const COMMANDS: &[(&str, &[Method])] = &[
    ("abort", &[Method::Abort]),
    ("agent run", &[Method::Spawn]),
    ("answer", &[Method::Answer]),
    // Its commands pass the gate of the browser, one by one: `handover_cdp`.
    ("browser cdp", &[Method::CdpOpen]),
    ("browser mcp", &[Method::CdpOpen]),
    ("completions", &[]),
    ("config check", &[]),
    ("config show", &[]),
    // Says for a browser what that asks, as it is: `console::scope` lists the methods.
    (
        "console",
        &[
            Method::Abort,
            Method::Answer,
            Method::ControlAcquire,
            Method::ControlGive,
            Method::ControlPause,
            Method::ControlReclaim,
            Method::ControlRefuse,
            Method::ControlRenew,
            Method::ControlRequest,
            Method::ControlResume,
            Method::ControlReturn,
            Method::ControlRevoke,
            Method::ControlSecret,
            Method::Steer,
            Method::Stop,
            Method::StopAllInput,
        ],
    ),
    ("console link", &[]),
    ("desktop click", &[Method::DesktopClick]),
    ("desktop destroy", &[Method::DesktopDestroy]),
    ("desktop double-click", &[Method::DesktopDoubleClick]),
    ("desktop drag", &[Method::DesktopDrag]),
    ("desktop key", &[Method::DesktopKey]),
    ("desktop launch", &[Method::DesktopLaunch]),
    ("desktop move", &[Method::DesktopMove]),
    ("desktop new", &[Method::DesktopNew]),
    ("desktop screenshot", &[]),
    ("desktop scroll", &[Method::DesktopScroll]),
    ("desktop type", &[Method::DesktopType]),
    ("desktop windows", &[]),
    ("doctor", &[]),
    ("down", &[Method::Stop]),
    ("follow", &[]),
    // Is a host: nothing acts through it but what calls it.
    ("host", &[]),
    ("install-links", &[]),
    ("list", &[]),
    ("log", &[]),
    ("man", &[]),
    // Its tools have their own list, with their gates: `mcp::tools`.
    ("mcp", &[]),
    ("pause", &[Method::ControlPause]),
    // Its calls pass the gate by permits: `relay::gate`.
    ("relay", &[Method::ControlPermit, Method::ControlComplete]),
    ("report", &[]),
    ("result", &[]),
    ("resume", &[Method::ControlResume]),
    ("sessions", &[]),
    // Writes what another program reads at its next start; speaks to no host.
    ("setup", &[]),
    ("steer", &[Method::Steer]),
    ("stop-all", &[Method::StopAllInput]),
    ("takeover return", &[Method::ControlReturn]),
    ("takeover revoke", &[Method::ControlRevoke]),
    ("takeover status", &[]),
    (
        "top",
        &[
            Method::Steer,
            Method::Abort,
            Method::Answer,
            Method::ControlPause,
            Method::ControlResume,
            Method::ControlReturn,
            Method::StopAllInput,
        ],
    ),
    ("up", &[]),
    ("verify", &[]),
    (
        "watch",
        &[
            Method::ControlAcquire,
            Method::ControlRequest,
            Method::ControlRenew,
            Method::ControlGive,
            Method::ControlRefuse,
            Method::ControlReturn,
        ],
    ),
];

/// The commands that do something themselves, with the words before them.
fn leaves(command: &clap::Command, words: &str, found: &mut Vec<String>) {
    for below in command.get_subcommands() {
        let name = format!("{words} {}", below.get_name()).trim().to_owned();
        leaves(below, &name, found);
        if !below.is_subcommand_required_set() {
            found.push(name);
        }
    }
}

#[test]
fn every_command_has_declared_its_gates() {
    let mut found = Vec::new();
    leaves(&Cli::command(), "", &mut found);
    found.sort_unstable();
    let declared: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
    assert_eq!(found, declared, "a command without declared gates");
}

/// Whoever runs a command: what acts on a desktop passes its gate, and what changes who may act is
/// for people alone.
#[test]
fn no_command_has_a_way_of_its_own() {
    for (name, methods) in COMMANDS {
        for method in *methods {
            let acts_on_a_desktop = name.starts_with("desktop ") || *name == "relay";
            let completes = *method == Method::ControlComplete;
            // A person's own act, in human time.
            let is_secret = *method == Method::ControlSecret;
            let acts = acts_on_a_desktop && !completes || is_secret;
            assert_eq!(method.gate() == Gate::Acts, acts, "{name}");
            assert_ne!(method.gate(), Gate::Observes, "{name}: {method}");
            let permits = [Method::ControlPermit, Method::ControlComplete].contains(method);
            let changes_control = method.name().starts_with("control.") && !permits;
            assert!(!changes_control || method.human_only(), "{name}: {method}");
        }
    }
}
