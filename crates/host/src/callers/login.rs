//! What speaks for a person at a process.

use std::path::Path;

use super::Evidence;
use crate::system::process::Stat;

/// The best evidence for a person behind `stat`, which no agent and no desktop stands above.
pub(super) fn evidence(stat: &Stat) -> Evidence {
    if stat.terminal.is_some() {
        return Evidence::Tty;
    }
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", stat.pid));
    let in_scope = read("cgroup").is_ok_and(|groups| has_session_scope(&groups));
    // The number that the login gave its processes and no process can change; 2^32-1 is none.
    let in_session = read("sessionid")
        .ok()
        .and_then(|number| number.trim().parse::<u32>().ok())
        .filter(|&number| number != u32::MAX)
        .is_some_and(|number| Path::new(&format!("/run/systemd/sessions/{number}")).exists());
    if in_scope || in_session {
        Evidence::Logind
    } else {
        Evidence::Lineage
    }
}

/// `0::/user.slice/user-1000.slice/session-3.scope`, in any hierarchy.
fn has_session_scope(groups: &str) -> bool {
    groups.lines().any(|line| {
        line.split('/')
            .any(|part| part.starts_with("session-") && part.ends_with(".scope"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_scopes() {
        assert!(has_session_scope(
            "1:cpu:/\n0::/user.slice/user-1000.slice/session-c2.scope\n"
        ));
        assert!(!has_session_scope(
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/cron.service\n"
        ));
    }
}
