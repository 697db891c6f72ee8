//! How many files and sockets this process may have open.

use std::io;
use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// What it was before it was raised.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit of this process to `wanted`, or as far as it may. Answers what it is now.
pub fn raise(wanted: u64) -> io::Result<u64> {
    let before = getrlimit(Resource::Nofile);
    // None means that there is no limit.
    let Some(current) = before.current else {
        return Ok(wanted);
    };
    let reachable = before.maximum.map_or(wanted, |most| most.min(wanted));
    if reachable <= current {
        return Ok(current);
    }
    let raised = Rlimit {
        current: Some(reachable),
        maximum: before.maximum,
    };
    setrlimit(Resource::Nofile, raised)?;
    // Raised a second time, it is still the first that counts.
    let _ = BEFORE.set(before);
    Ok(reachable)
}

/// Gives a child the limit that this process had itself: programs that use `select` break above 1,024,
/// and some close every descriptor that they may have. Does nothing if the limit was not raised.
pub fn restore_for(child: u32) -> io::Result<()> {
    let Some(before) = BEFORE.get() else {
        return Ok(());
    };
    let child = i32::try_from(child).ok().and_then(Pid::from_raw);
    let before = Rlimit {
        current: before.current,
        maximum: before.maximum,
    };
    prlimit(child, Resource::Nofile, before)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn limit_of(pid: u32) -> String {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let line = limits
            .lines()
            .find(|line| line.starts_with("Max open files"));
        line.unwrap().to_owned()
    }

    #[test]
    fn it_is_raised_as_far_as_it_goes_and_children_have_the_former_one() {
        let before = getrlimit(Resource::Nofile);
        let (Some(current), Some(most)) = (before.current, before.maximum) else {
            return; // Without a limit there is nothing to raise.
        };
        let low = Rlimit {
            current: Some(current.min(200)),
            maximum: before.maximum,
        };
        setrlimit(Resource::Nofile, low).unwrap();
        let formerly = limit_of(std::process::id());
        assert_eq!(raise(100).unwrap(), current.min(200));
        assert_eq!(raise(210).unwrap(), most.min(210));
        assert_eq!(raise(u64::MAX).unwrap(), most);
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        restore_for(child.id()).unwrap();
        assert_eq!(limit_of(child.id()), formerly);
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
