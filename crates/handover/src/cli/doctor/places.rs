//! The directories for records and sockets.

use std::path::Path;

use handover_host::system::dirs::{self, Roots};
use handover_host::system::socket;

use super::{Check, Need};

/// The longest name of a socket below a session's runtime directory, with the session's.
const LONGEST_SOCKET: &str = "00000000/view-v999999.sock";

/// Looks at each directory.
pub fn check() -> Vec<Check> {
    let roots = Roots::from_env();
    let mut checks = vec![directory("state directory", roots.state())];
    let runtime = roots.runtime();
    let lengths = runtime.as_deref().ok().map(socket_path);
    checks.push(directory("runtime directory", runtime));
    checks.extend(lengths);
    for place in roots.runtime_candidates() {
        if !place.exists() {
            continue;
        }
        // A host may have put its socket there under another environment; one that cannot be
        // trusted is not searched.
        if let Err(error) = dirs::check_private(&place, "XDG_RUNTIME_DIR") {
            let remedy = format!("remove or mend {}", place.display());
            checks.push(Check::bad(
                "searched directory",
                Need::Recommended,
                error.to_string(),
                remedy,
            ));
        }
    }
    checks
}

fn directory(name: &'static str, made: Result<std::path::PathBuf, dirs::DirError>) -> Check {
    match made {
        Ok(path) => Check::good(
            name,
            Need::Required,
            format!("{}, mode 0700", path.display()),
        ),
        Err(error) => Check::bad(
            name,
            Need::Required,
            error.to_string(),
            "see the line above",
        ),
    }
}

fn socket_path(runtime: &Path) -> Check {
    let longest = runtime.join(LONGEST_SOCKET);
    let length = longest.as_os_str().len();
    match socket::check_path(&longest) {
        Ok(()) => Check::good(
            "socket paths",
            Need::Required,
            format!(
                "up to {length} bytes, of {} that the kernel allows",
                socket::MAX_PATH
            ),
        ),
        Err(error) => Check::bad(
            "socket paths",
            Need::Required,
            error.to_string(),
            "set XDG_RUNTIME_DIR to a shorter directory",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_are_told_beforehand() {
        assert!(socket_path(Path::new("/run/user/1000/handover")).ok);
        let long = "/".to_owned() + &"x".repeat(90);
        assert!(!socket_path(Path::new(&long)).ok);
    }
}
