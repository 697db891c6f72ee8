//! The demo itself: with nobody at a terminal it plays the whole story and leaves nothing behind,
//! and an interrupt ends everything that it started.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Longest time for the whole story, on a machine with much else to do.
const BOUND: Duration = Duration::from_secs(180);

/// Directories of one run. Paths are short, since a unix socket's path may have 107 bytes only.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = tempfile::Builder::new()
            .prefix("hd")
            .tempdir_in("/tmp")
            .expect("/tmp");
        for name in ["r", "s", "t"] {
            let path = place.path().join(name);
            fs::create_dir(&path).expect("a directory");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("a mode");
        }
        Self(place)
    }

    fn demo(&self) -> Child {
        self.start(&mut Command::new(env!("CARGO_BIN_EXE_handover-demo")))
    }

    fn start(&self, demo: &mut Command) -> Child {
        demo.env("CI", "true")
            .env("XDG_RUNTIME_DIR", self.0.path().join("r"))
            .env("XDG_STATE_HOME", self.0.path().join("s"))
            .env("TMPDIR", self.0.path().join("t"))
            .env_remove("HANDOVER_SESSION")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(self.told()).expect("a file"))
            .spawn()
            .expect("the demo starts")
    }

    fn told(&self) -> PathBuf {
        self.0.path().join("told")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.told()).unwrap_or_default()
    }

    /// Processes that still have this place in their command line or environment.
    fn processes(&self) -> Vec<String> {
        let mark = self.0.path().to_string_lossy().into_owned();
        let holds = |path: PathBuf| {
            fs::read(path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(&mark))
        };
        let all = fs::read_dir("/proc")
            .expect("/proc")
            .flatten()
            .map(|entry| entry.path());
        all.filter(|process| holds(process.join("cmdline")) || holds(process.join("environ")))
            .map(|process| fs::read_to_string(process.join("comm")).unwrap_or_default())
            .collect()
    }

    fn assert_clean(&self) {
        assert_eq!(self.processes(), Vec::<String>::new(), "{}", self.text());
        let left = |name: &str| {
            let path = self.0.path().join(name);
            fs::read_dir(path).map(|found| found.flatten().map(|entry| entry.path()).collect())
        };
        let temporary: Vec<PathBuf> = left("t").expect("a directory");
        assert_eq!(temporary, Vec::<PathBuf>::new());
        let sockets: Vec<PathBuf> = left("r/handover").unwrap_or_default();
        assert_eq!(sockets, Vec::<PathBuf>::new());
    }
}

/// Waits for the end of the demo, at most for [`BOUND`].
fn finish(mut demo: Child) -> Output {
    let started = Instant::now();
    while demo.try_wait().expect("a child").is_none() {
        assert!(started.elapsed() < BOUND, "the demo still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
    demo.wait_with_output().expect("its output")
}

#[test]
fn the_whole_story_happens_and_leaves_nothing_behind() {
    let place = Place::new();
    let output = finish(place.demo());
    assert!(output.status.success(), "{}", place.text());
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let report = fs::read_to_string(Path::new(printed.trim())).expect("a report");
    assert!(
        report.contains("control given back"),
        "the report tells of the takeover"
    );
    assert!(
        !place.text().contains("tide-"),
        "the password is nowhere to be read"
    );
    assert!(
        !report.contains("tide-"),
        "the password is nowhere to be read"
    );
    place.assert_clean();
}

#[test]
fn an_interrupt_ends_everything() {
    let place = Place::new();
    let demo = place.demo();
    let started = Instant::now();
    while !place.text().contains("in Chromium") {
        assert!(started.elapsed() < BOUND, "{}", place.text());
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&demo), Signal::INT).expect("a signal");
    let output = finish(demo);
    assert_eq!(output.status.code(), Some(130), "{}", place.text());
    place.assert_clean();
}

#[test]
fn where_nobody_is_believed_to_be_a_person_the_demo_fails_and_leaves_nothing_behind() {
    let place = Place::new();
    let mut demo = Command::new(env!("CARGO_BIN_EXE_handover-demo"));
    // So an agent's program marks what it starts, and it has no terminal to ask at.
    let output = finish(place.start(demo.env("CLAUDECODE", "1")));
    assert_eq!(output.status.code(), Some(1), "{}", place.text());
    assert!(
        place.text().contains("the host refused"),
        "{}",
        place.text()
    );
    place.assert_clean();
}
