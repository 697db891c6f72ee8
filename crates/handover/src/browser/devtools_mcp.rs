//! The official `chrome-devtools-mcp`, in the version that this project pins. It is installed with `npm`
//! below the user's data directory when it is first used; npm checks every package against the hashes of
//! the lock file that is part of this program.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

/// What is installed.
const PACKAGE: &str = include_str!("chrome-devtools-mcp/package.json");
/// The same, with the hash of every package.
const LOCK: &str = include_str!("chrome-devtools-mcp/package-lock.json");
/// Its program, below where it is installed.
const PROGRAM: &str = "node_modules/chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js";
/// A copy of the lock file, there once everything is.
const COMPLETE: &str = "installed";

/// Where it is installed: `$XDG_DATA_HOME/handover/chrome-devtools-mcp`, or below `~/.local/share`.
fn place() -> io::Result<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share"));
    let data = data.or_else(home);
    let data = data.ok_or_else(|| io::Error::other("neither XDG_DATA_HOME nor HOME is set"))?;
    Ok(data.join("handover/chrome-devtools-mcp"))
}

/// Its program, installed if it is not.
///
/// # Errors
/// It cannot be installed: no `npm`, no network, or what came was not what the hashes say.
pub async fn program() -> io::Result<PathBuf> {
    let place = place()?;
    let complete = place.join(COMPLETE);
    if !std::fs::read_to_string(&complete).is_ok_and(|lock| lock == LOCK) {
        install(&place).await?;
        std::fs::write(&complete, LOCK)?;
    }
    Ok(place.join(PROGRAM))
}

async fn install(place: &Path) -> io::Result<()> {
    std::fs::create_dir_all(place)?;
    std::fs::write(place.join("package.json"), PACKAGE)?;
    std::fs::write(place.join("package-lock.json"), LOCK)?;
    let ended = Command::new("npm")
        .args([
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            "--prefix",
        ])
        .arg(place)
        .stdin(Stdio::null())
        // Standard output is the MCP client's.
        .stdout(io::stderr())
        .status()
        .await
        .map_err(|error| {
            let text = format!(
                "npm cannot be run: {error}; install Node.js with npm (Debian package npm) and try again"
            );
            io::Error::new(error.kind(), text)
        })?;
    if ended.success() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "npm could not install chrome-devtools-mcp below {} ({ended}); what it says above is why: the first use needs the npm registry, and what it gives must have the hashes that this program was built with",
        place.display()
    )))
}

/// Runs it on our standard streams against the WebSocket, to its end.
///
/// # Errors
/// `node` cannot be run.
pub async fn run(
    program: &Path,
    websocket: &str,
    arguments: &[String],
) -> io::Result<std::process::ExitStatus> {
    Command::new("node")
        .arg(program)
        .args(["--wsEndpoint", websocket, "--no-usage-statistics"])
        .args(arguments)
        .kill_on_drop(true)
        .status()
        .await
        .map_err(|error| io::Error::new(error.kind(), format!("node cannot be run: {error}; install Node.js (Debian package nodejs) and try again")))
}
