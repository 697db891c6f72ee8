//! Directories and environment of one measurement, and the end of all that was started in it.

use std::{
    fs::{self, File},
    io::{Read, Seek},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::Outcome;

/// A fresh place. Its paths are short, since a unix socket's path may have 107 bytes only.
pub struct Place {
    directory: TempDir,
}

impl Place {
    /// Makes the directories.
    pub fn new() -> Outcome<Self> {
        let directory = tempfile::Builder::new().prefix("hb").tempdir_in("/tmp")?;
        for name in ["r", "s", "p", "bin"] {
            let path = directory.path().join(name);
            fs::create_dir(&path)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
        }
        // By that name this program is an agent's; see `pi`.
        symlink(std::env::current_exe()?, directory.path().join("bin/pi"))?;
        Ok(Self { directory })
    }

    /// The root of the place.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A command of the program, which is built beside this one.
    pub fn handover(&self) -> Outcome<Command> {
        let program = std::env::current_exe()?.with_file_name("handover");
        let mut path = self.path().join("bin").into_os_string();
        if let Some(inherited) = std::env::var_os("PATH") {
            path.push(":");
            path.push(inherited);
        }
        let mut command = Command::new(program);
        command
            .env("PATH", path)
            .current_dir(self.path().join("p"))
            .env("XDG_RUNTIME_DIR", self.path().join("r"))
            .env("XDG_STATE_HOME", self.path().join("s"))
            .env("HOME", self.path())
            .stdin(Stdio::null());
        for name in [
            "HANDOVER_SESSION",
            "DISPLAY",
            "XAUTHORITY",
            "WAYLAND_DISPLAY",
        ] {
            command.env_remove(name);
        }
        Ok(command)
    }

    /// The live processes that were started here: those whose command line or environment names this
    /// directory, which no other has.
    fn processes(&self) -> Vec<Pid> {
        let mark = self.path().as_os_str().as_encoded_bytes();
        let own = rustix::process::getpid();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(Pid::from_raw)
            .filter(|&pid| pid != own && names(pid, mark) && !is_zombie(pid))
            .collect()
    }
}

fn names(pid: Pid, mark: &[u8]) -> bool {
    ["cmdline", "environ"].iter().any(|file| {
        let text = fs::read(format!("/proc/{}/{file}", pid.as_raw_nonzero())).unwrap_or_default();
        text.windows(mark.len()).any(|window| window == mark)
    })
}

fn is_zombie(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    // The name may hold anything; the state follows its last parenthesis.
    stat.is_ok_and(|stat| {
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| rest.starts_with(" Z"))
    })
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Ok(mut command) = self.handover() {
            let _ = finish(command.args(["down", "--all"]), Duration::from_secs(10));
        }
        // A process that ends may have just started another: until none is left.
        for _ in 0..100 {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            for pid in left {
                let _ = kill_process(pid, Signal::KILL);
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Runs a command to its end, or kills it after `limit`.
///
/// What it prints goes to files: a service that it leaves behind may hold a pipe open for ever.
pub fn finish(command: &mut Command, limit: Duration) -> Outcome<Output> {
    let arguments: Vec<_> = command
        .get_args()
        .map(|argument| argument.display().to_string())
        .collect();
    let name = arguments.join(" ");
    let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut child = command
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?)
        .spawn()?;
    let (pid, started) = (Pid::from_child(&child), Instant::now());
    // Its end is waited for, not polled: polling would show in the figures.
    let watch = thread::spawn(move || {
        thread::park_timeout(limit);
        if started.elapsed() >= limit {
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    let status = child.wait();
    watch.thread().unpark();
    let output = Output {
        status: status?,
        stdout: read(&mut stdout)?,
        stderr: read(&mut stderr)?,
    };
    if !output.status.success() {
        // With --json the reason is on standard output.
        let said = [&output.stderr[..], &output.stdout[..]].concat();
        let said = String::from_utf8_lossy(&said);
        return Err(format!("`handover {name}`: {}: {}", output.status, said.trim()).into());
    }
    Ok(output)
}

fn read(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Waits until `ready` gives something, for at most `limit`.
pub fn eventually<T>(
    what: &str,
    limit: Duration,
    mut ready: impl FnMut() -> Option<T>,
) -> Outcome<T> {
    let started = Instant::now();
    loop {
        if let Some(found) = ready() {
            return Ok(found);
        }
        if started.elapsed() > limit {
            return Err(format!("not within {limit:?}: {what}").into());
        }
        thread::sleep(Duration::from_micros(200));
    }
}

/// A path as text.
pub fn text(path: &Path) -> Outcome<&str> {
    path.to_str()
        .ok_or_else(|| format!("{} is not UTF-8", path.display()).into())
}

/// A path out of JSON.
pub fn path(value: &serde_json::Value) -> Outcome<PathBuf> {
    Ok(value
        .as_str()
        .ok_or("a path is missing in the answer")?
        .into())
}
