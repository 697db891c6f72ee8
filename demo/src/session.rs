//! The session of the demo, driven by the command line that a person would use.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::Command;

use crate::failure::Failure;
use crate::wait;

/// How long one command may take.
const COMMAND_TIME: Duration = Duration::from_secs(60);

/// A running session with one desktop.
pub struct Session {
    handover: PathBuf,
    /// Its id.
    pub id: String,
    /// Its only desktop.
    pub desktop: String,
    /// Its attach socket.
    pub socket: PathBuf,
    /// The host's process.
    host: Option<Pid>,
}

impl Session {
    /// Starts a session for `project`, a directory of the demo's own.
    ///
    /// # Errors
    /// When the session does not come up with a desktop.
    pub async fn start(handover: &Path, project: &Path) -> Result<Self, Failure> {
        let arguments = [
            "up",
            "--new",
            "--name",
            "demo",
            "--desktop",
            "--size",
            "1280x800",
            "--json",
        ];
        let mut command = Command::new(handover);
        command.args(arguments).current_dir(project);
        let told = json(&checked(command).await?.stdout, "handover up")?;
        let text = |value: &Value, what: &str| {
            let text = value.as_str().map(str::to_owned);
            text.ok_or_else(|| Failure::new(format!("handover up told no {what}: {told}")))
        };
        let desktop = &told["desktops"][0];
        let desktop = if desktop.is_object() {
            &desktop["id"]
        } else {
            desktop
        };
        Ok(Self {
            handover: handover.to_owned(),
            id: text(&told["sessionId"], "sessionId")?,
            desktop: text(desktop, "desktop")?,
            socket: text(&told["socketPath"], "socketPath")?.into(),
            host: told["pid"]
                .as_i64()
                .and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)),
        })
    }

    /// A command of `handover` for this session.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.handover);
        command.args([name, "--session", &self.id]);
        command
    }

    /// Everything on record, oldest first.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub async fn events(&self) -> Result<Vec<Value>, Failure> {
        let mut command = self.command("log");
        command.arg("--json");
        let output = checked(command).await?;
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| json(line.as_bytes(), "handover log"))
            .collect()
    }

    /// Checks the record's hash chain.
    ///
    /// # Errors
    /// When the chain is broken.
    pub async fn verify(&self) -> Result<(), Failure> {
        checked(self.command("verify")).await.map(drop)
    }

    /// Writes the HTML report and returns its path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn report(&self) -> Result<PathBuf, Failure> {
        let mut command = self.command("report");
        command.arg("--json");
        let told = json(&checked(command).await?.stdout, "handover report")?;
        let path = told["path"].as_str().map(PathBuf::from);
        let path = path.ok_or_else(|| Failure::new(format!("the report has no path: {told}")))?;
        match tokio::fs::metadata(&path).await?.len() {
            0 => Err(Failure::new("the report is empty")),
            _ => Ok(path),
        }
    }

    /// Ends the session, its desktop and everything on it, even if somebody is in control.
    ///
    /// # Errors
    /// When it does not end in time.
    pub async fn stop(&self) -> Result<(), Failure> {
        let mut command = self.command("down");
        command.arg("--force");
        let Err(refused) = checked(command).await else {
            return Ok(());
        };
        // Only a person may end a session, and below an agent's program none is believed to be
        // there. The host ends as orderly upon a signal.
        let Some(host) = self.host.filter(|_| self.socket.exists()) else {
            return Err(refused);
        };
        kill_process(host, Signal::TERM).map_err(std::io::Error::from)?;
        wait::until("the end of the host", COMMAND_TIME, async || {
            Ok((!self.socket.exists()).then_some(()))
        })
        .await
    }
}

/// Runs a command to its end; anything but success is a failure that shows what it said.
async fn checked(mut command: Command) -> Result<Output, Failure> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let name = format!("{:?}", command.as_std());
    let output = tokio::time::timeout(COMMAND_TIME, command.output())
        .await
        .map_err(|_| Failure::new(format!("{name} did not end within {COMMAND_TIME:?}")))??;
    if output.status.success() {
        return Ok(output);
    }
    let said = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    Err(Failure::new(format!(
        "{name} failed ({}): {said}",
        output.status
    )))
}

fn json(bytes: &[u8], what: &str) -> Result<Value, Failure> {
    serde_json::from_slice(bytes)
        .map_err(|error| Failure::new(format!("{what} printed something that is no JSON: {error}")))
}
