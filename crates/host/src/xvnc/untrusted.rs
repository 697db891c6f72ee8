//! Cookies for programs that are to have as little of the display as X can give: no XTEST, no XInput,
//! no look at other windows. Some programs do not work so (Chromium garbles keys), hence by choice.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::{DesktopFiles, find_program};

const WITHIN: Duration = Duration::from_secs(5);

/// Makes an untrusted cookie for `display` and answers the file that holds it, for `XAUTHORITY` in place
/// of the desktop's own. It lasts as long as the display; the file goes with the desktop's.
///
/// A program of the same user can still read the desktop's own cookie if it looks for it.
pub async fn untrusted_cookie(files: &DesktopFiles, display: u32) -> io::Result<PathBuf> {
    let xauth = find_program("xauth").ok_or_else(|| {
        io::Error::other("xauth is not installed; install the package xauth and try again")
    })?;
    let path = files.dir.join("Xauthority-untrusted");
    let mut command = Command::new(xauth);
    command
        .arg("-f")
        .arg(&path)
        .arg("generate")
        .arg(format!(":{display}"))
        // "." is the usual protocol; "timeout 0" keeps it while no client uses it.
        .args([".", "untrusted", "timeout", "0"])
        .env("XAUTHORITY", files.xauthority())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let output = timeout(WITHIN, command.output())
        .await
        .map_err(|_| io::Error::other("xauth did not answer"))??;
    if output.status.success() {
        Ok(path)
    } else {
        Err(io::Error::other(format!(
            "xauth made no cookie: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )))
    }
}
