//! The features of the kernel that safety rests on. Each is tried, not looked up.

use std::io;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use handover_host::system::clock::BootTimer;
use handover_host::system::process::ProcessIdentity;
use handover_host::system::{creds, prctl};

use super::super::context::block_on;
use super::{Check, Need};

const NEWER: &str =
    "use Linux 5.10 or newer, and a container runtime whose seccomp profile allows it";

/// Tries each feature.
pub fn check() -> Vec<Check> {
    vec![
        tried(
            "SO_PASSCRED",
            "tells who sent a message",
            UnixStream::pair().and_then(|(ours, _)| creds::request_credentials(&ours)),
        ),
        tried(
            "child subreaper",
            "keeps a desktop's processes in one tree",
            prctl::become_subreaper(),
        ),
        tried(
            "pidfd",
            "signals exactly the process that is meant",
            ProcessIdentity::own().and_then(|own| own.open()).map(drop),
        ),
        tried(
            "timerfd on CLOCK_BOOTTIME",
            "ends leases in time, also over a suspend",
            block_on(async { Ok(BootTimer::new().map(drop)) })
                .unwrap_or_else(|failure| Err(io::Error::other(failure.message().to_owned()))),
        ),
        network(),
    ]
}

fn tried(name: &'static str, purpose: &str, result: io::Result<()>) -> Check {
    match result {
        Ok(()) => Check::good(name, Need::Required, "works"),
        Err(error) => Check::bad(
            name,
            Need::Required,
            format!("{error}; it {purpose}"),
            NEWER,
        ),
    }
}

/// Whether a desktop can be given a network of its own, with nothing in it.
fn network() -> Check {
    let name = "empty network namespace";
    for (flags, detail) in [("-n", "unshare -n works"), ("-rn", "unshare -rn works")] {
        let tried = Command::new("unshare")
            .args([flags, "true"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if tried.is_ok_and(|status| status.success()) {
            return Check::good(name, Need::Recommended, detail);
        }
    }
    Check::bad(
        name,
        Need::Recommended,
        "neither unshare -n nor unshare -rn works: a program on a desktop could make its display \
         connect to elsewhere",
        "allow user namespaces: sudo sysctl kernel.unprivileged_userns_clone=1 \
         user.max_user_namespaces=1000; in a container, allow unshare in its seccomp profile",
    )
}
