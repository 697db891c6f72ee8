//! An Xvnc for one test, started as a desktop's would be.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use handover_host::display::{Screen, SizeChanges, Upstream, X11, upstream::Address};
use handover_rfb::handshake::Credentials;
use handover_rfb::vncauth;

/// Bound of every wait; far longer than any takes.
pub const PATIENCE: Duration = Duration::from_secs(20);

const COOKIE: [u8; 16] = *b"sixteen secrets!";

pub struct Xvnc {
    server: Child,
    pub display: u32,
    pub directory: tempfile::TempDir,
    applications: Vec<Child>,
}

/// Display numbers of one process, more than it has tests.
const NUMBERS: u32 = 32;

/// Servers that this process has started.
static STARTED: AtomicU32 = AtomicU32::new(0);

impl Xvnc {
    pub fn start(size: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        fs::write(at("passwd"), vncauth::password_file(b"full", b"view")).expect("written");
        fs::write(at("auth"), authority(&COOKIE)).expect("written");
        // Left to itself the server would take the socket of another one: it finds free numbers by
        // abstract sockets, which are off here, and with `-displayfd` it takes no lock. So every
        // server gets a number that no other test has, in this process or in one beside it.
        let first = std::process::id() % 600 * NUMBERS + 100;
        for _ in 0..NUMBERS {
            let display = first + STARTED.fetch_add(1, Ordering::Relaxed) % NUMBERS;
            let mut server = Command::new("Xvnc")
                .arg(format!(":{display}"))
                .args(["-displayfd", "1", "-geometry", size, "-depth", "24"])
                .args(["-rfbport", "-1", "-rfbunixmode", "0600", "-rfbunixpath"])
                .arg(at("rfb"))
                .args(["-SecurityTypes", "VncAuth", "-PasswordFile"])
                .arg(at("passwd"))
                .arg("-auth")
                .arg(at("auth"))
                .args(["-nolisten", "tcp", "-nolisten", "local", "-tst", "-noreset"])
                .args(["-AllowOverride=", "-AlwaysShared=1", "-UseBlacklist=0"])
                .args(["-AcceptSetDesktopSize=0"])
                .stdout(Stdio::piped())
                .stderr(fs::File::create(at("log")).expect("created"))
                .spawn()
                .expect("Xvnc is installed");
            let output = server.stdout.take().expect("piped");
            let mut line = String::new();
            BufReader::new(output)
                .read_line(&mut line)
                .expect("it starts or ends");
            if line.trim() == display.to_string() {
                return Self {
                    server,
                    display,
                    directory,
                    applications: Vec::new(),
                };
            }
            server.wait().expect("it ended");
        }
        panic!("no free display");
    }

    pub fn upstream(&self) -> Upstream {
        Upstream::new(Address::Unix(self.directory.path().join("rfb")))
    }

    /// Its pictures, over a view-only connection.
    pub fn screen(&self) -> Screen {
        let credentials = Credentials::Password("view".into());
        Screen::spawn(self.upstream(), credentials, SizeChanges::Follow)
    }

    pub fn x11(&self) -> X11 {
        X11::spawn(self.display, COOKIE).expect("a thread")
    }

    /// A command on the display, with the trusted cookie.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("DISPLAY", format!(":{}", self.display))
            .env("XAUTHORITY", self.directory.path().join("auth"))
            // What programs go by when text beyond ASCII is typed or shown; not every machine sets one.
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Starts a program on the display; it ends with the test.
    pub fn run(&mut self, program: &str, arguments: &[&str]) -> u32 {
        let child = self
            .command(program)
            .args(arguments)
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        let pid = child.id();
        self.applications.push(child);
        pid
    }

    /// Stops or continues the server.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.server);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).expect("a log")
    }
}

impl Drop for Xvnc {
    fn drop(&mut self) {
        for child in self.applications.iter_mut().chain([&mut self.server]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// An authority file that lets this cookie in on any display.
pub fn authority(cookie: &[u8; 16]) -> Vec<u8> {
    const WILD: [u8; 2] = [0xff, 0xff];
    let mut file = WILD.to_vec();
    // No address and no display number.
    file.extend([0, 0, 0, 0]);
    for part in [b"MIT-MAGIC-COOKIE-1".as_slice(), cookie] {
        file.extend((part.len() as u16).to_be_bytes());
        file.extend(part);
    }
    file
}

pub fn write_authority(path: &PathBuf, cookie: &[u8; 16]) {
    fs::write(path, authority(cookie)).expect("written");
}

/// Waits for a condition, which is asked again and again.
pub async fn until<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = condition().await {
            return found;
        }
        assert!(Instant::now() < deadline, "never came to be: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
