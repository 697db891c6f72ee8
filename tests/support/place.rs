//! A place of its own for one test: directories, environment, and the end of all that was started in it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::processes::{self, Signal};

/// Directories and environment in which a test runs the program. Whatever was started in it is killed,
/// by pid, when it is dropped.
pub struct Place {
    directory: TempDir,
    environment: Vec<(String, OsString)>,
    /// What every command is started by, program first.
    starter: Vec<OsString>,
    /// The program under test.
    program: String,
}

/// The user as whom root runs what an ordinary user would.
const ORDINARY: u32 = 65534;

impl Place {
    /// A fresh place. Its paths are short, since a unix socket's path may have 107 bytes only.
    pub fn new() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("ho")
            .rand_bytes(6)
            .tempdir_in("/tmp")
            .expect("/tmp");
        for name in ["r", "s", "p"] {
            fs::create_dir(directory.path().join(name)).expect("a directory of the test");
        }
        fs::set_permissions(
            directory.path().join("r"),
            fs::Permissions::from_mode(0o700),
        )
        .expect("mode");
        Self {
            directory,
            environment: Vec::new(),
            starter: Vec::new(),
            program: env!("CARGO_BIN_EXE_handover").into(),
        }
    }

    /// A fresh place of an ordinary user, as whom all commands are started. None, and it is said why, where root
    /// cannot try that.
    pub fn of_an_ordinary_user() -> Option<Self> {
        let mut place = Self::new();
        if !rustix::process::geteuid().is_root() {
            return Some(place);
        }
        let null = fs::metadata("/dev/null").expect("/dev/null").permissions();
        if null.mode() & 0o006 != 0o006 {
            eprintln!("skipped: ordinary users cannot use /dev/null here (chmod 666 /dev/null)");
            return None;
        }
        // The program may lie where they cannot go.
        let program = place.path().join("handover");
        fs::hard_link(&place.program, &program)
            .or_else(|_| fs::copy(&place.program, &program).map(drop))
            .expect("the program");
        place.program = program.to_string_lossy().into_owned();
        let all = [
            place.path().into(),
            place.runtime(),
            place.state(),
            place.project(),
        ];
        for directory in all {
            chown(directory, Some(ORDINARY), Some(ORDINARY)).expect("root may");
        }
        let (uid, gid) = (format!("--reuid={ORDINARY}"), format!("--regid={ORDINARY}"));
        place.start_by(&["setpriv", &uid, &gid, "--clear-groups", "--"]);
        Some(place)
    }

    /// Lets every command from now on be started by another, whose last arguments it becomes.
    pub fn start_by(&mut self, starter: &[&str]) {
        self.starter = starter.iter().map(Into::into).collect();
    }

    /// Gives every command that is started here from now on a further environment variable.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.push((name.to_owned(), value.into()));
    }

    /// The root of the place.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The project directory in which commands run.
    pub fn project(&self) -> PathBuf {
        self.path().join("p")
    }

    /// What `XDG_RUNTIME_DIR` is here.
    pub fn runtime(&self) -> PathBuf {
        self.path().join("r")
    }

    /// What `XDG_STATE_HOME` is here.
    pub fn state(&self) -> PathBuf {
        self.path().join("s")
    }

    /// A command of any program with this place's environment.
    pub fn command(&self, program: &str) -> Command {
        let mut words = self.starter.iter().map(OsString::as_os_str);
        let mut command = match words.next() {
            None => Command::new(program),
            Some(starter) => {
                let mut command = Command::new(starter);
                command.args(words).arg(program);
                command
            }
        };
        command
            .current_dir(self.project())
            .env("XDG_RUNTIME_DIR", self.runtime());
        command
            .env("XDG_STATE_HOME", self.state())
            .env("HOME", self.path());
        for name in [
            // Programs on desktops get a locale from the host where the user has set none.
            "LC_ALL",
            "LC_CTYPE",
            "LANG",
            "HANDOVER_SESSION",
            "DISPLAY",
            "XAUTHORITY",
            "WAYLAND_DISPLAY",
            "HERDR_PANE_ID",
            "XDG_CONFIG_HOME",
            "DBUS_SESSION_BUS_ADDRESS",
        ] {
            command.env_remove(name);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// A command of the program under test with this place's environment.
    pub fn handover(&self) -> Command {
        self.command(&self.program)
    }

    /// The live processes that were started here.
    pub fn processes(&self) -> Vec<i32> {
        let mark = self.path().to_string_lossy().into_owned();
        let own = std::process::id().cast_signed();
        let started =
            |pid: &i32| *pid != own && processes::alive(*pid) && processes::mentions(*pid, &mark);
        processes::all().into_iter().filter(started).collect()
    }
}

impl Place {
    /// Shows the ends of all logs, for whoever looks into a failure.
    fn show_logs(&self) {
        let sessions = self.state().join("handover/sessions");
        for session in fs::read_dir(sessions).into_iter().flatten().flatten() {
            for log in fs::read_dir(session.path().join("logs"))
                .into_iter()
                .flatten()
                .flatten()
            {
                let text = fs::read(log.path()).unwrap_or_default();
                let text = String::from_utf8_lossy(&text);
                let lines: Vec<&str> = text.lines().collect();
                eprintln!("--- {}", log.path().display());
                eprintln!("{}", lines[lines.len().saturating_sub(30)..].join("\n"));
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.show_logs();
        }
        let mut killed = BTreeSet::new();
        // A process that ends may have just started another: until none is left.
        for _ in 0..100 {
            let mut left = self.processes();
            for pid in left.clone() {
                left.extend(processes::descendants(pid));
            }
            if left.is_empty() {
                break;
            }
            for &pid in &left {
                processes::signal(pid, Signal::KILL);
            }
            killed.extend(left);
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        remove_displays_of(&killed);
    }
}

/// Removes the lock and the socket of display servers that were killed, which had no time to do so.
fn remove_displays_of(killed: &BTreeSet<i32>) {
    for entry in fs::read_dir("/tmp").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name
            .strip_prefix(".X")
            .and_then(|rest| rest.strip_suffix("-lock"));
        let Some(number) = number else { continue };
        let server = fs::read_to_string(entry.path())
            .ok()
            .and_then(|text| text.trim().parse().ok());
        if server.is_some_and(|server| killed.contains(&server)) {
            let _ = fs::remove_file(format!("/tmp/.X11-unix/X{number}"));
            let _ = fs::remove_file(entry.path());
        }
    }
}
