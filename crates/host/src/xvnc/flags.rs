//! The command line of Xvnc.

use std::path::Path;

use super::{DesktopFiles, Network, XvncOptions};

/// Program and arguments, through `unshare` where that works.
pub(super) fn command(
    program: &Path,
    display: u32,
    files: &DesktopFiles,
    options: &XvncOptions,
    network: &Network,
) -> Vec<String> {
    let mut command: Vec<String> = network.prefix().iter().map(|&word| word.into()).collect();
    command.push(program.display().to_string());
    command.push(format!(":{display}"));
    let size = format!("{}x{}", options.width, options.height);
    for flag in [
        ["-geometry", &size],
        ["-depth", "24"],
        ["-dpi", "96"],
        // No TCP port at all: RFB on the unix socket only, private.
        ["-rfbport", "-1"],
        ["-rfbunixpath", &files.rfb_socket.display().to_string()],
        ["-rfbunixmode", "0600"],
        // The full password for the host, the view-only one for what stands behind viewers.
        ["-SecurityTypes", "VncAuth"],
        [
            "-PasswordFile",
            &files.password_file().display().to_string(),
        ],
        ["-auth", &files.xauthority().display().to_string()],
        ["-desktop", &options.title],
        ["-nolisten", "tcp"],
        // The abstract socket would be reachable across mount namespaces.
        ["-nolisten", "local"],
        // No screen saver: it would show black to a screenshot.
        ["-s", "0"],
    ] {
        command.extend(flag.map(str::to_owned));
    }
    for flag in [
        // Without it the server resets when the last client leaves: pointer and state are lost.
        "-noreset",
        // No XTEST and no RECORD: programs on the display can neither inject nor log by these.
        "-tst",
        // Programs on the display could otherwise change these settings (vncconfig -set).
        "-AllowOverride=",
        // A resize asked for by a client that cannot show it crashes Xvnc 1.12.
        "-AcceptSetDesktopSize=0",
        // A client that asks for an unshared desktop would throw the others out.
        "-AlwaysShared=1",
        // The host makes many connections; failures of somebody else must not lock it out.
        "-UseBlacklist=0",
        // As much as the attach socket takes in one request.
        "-MaxCutText=1048576",
    ] {
        command.push(flag.to_owned());
    }
    command.push(format!("-FrameRate={}", options.frame_rate));
    command
}
