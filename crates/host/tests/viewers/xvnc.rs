//! A real Xvnc without a host around it.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use handover_rfb::vncauth;

/// An Xvnc with a full and a view-only password, ended when dropped.
pub struct Xvnc {
    process: Child,
    pub dir: tempfile::TempDir,
    pub display: String,
}

impl Xvnc {
    pub const FULL: &str = "fullpass";
    pub const VIEW: &str = "viewpass";

    pub fn start(frame_rate: u32) -> Xvnc {
        let dir = tempfile::Builder::new()
            .prefix("hv")
            .tempdir()
            .expect("a directory");
        let password = dir.path().join("passwd");
        let passwords = vncauth::password_file(Self::FULL.as_bytes(), Self::VIEW.as_bytes());
        fs::write(&password, passwords).expect("written");
        // Each server claims its number by a lock file, and ends at once if it comes too late.
        let (process, display) = (0..100)
            .find_map(|_| {
                let display = format!(":{}", free_number());
                let mut process = Command::new("Xtigervnc")
                    .arg(&display)
                    .args(["-geometry", "1280x800", "-depth", "24", "-rfbport", "-1"])
                    .arg("-rfbunixpath")
                    .arg(dir.path().join("rfb"))
                    .args([
                        "-rfbunixmode",
                        "0600",
                        "-SecurityTypes",
                        "VncAuth",
                        "-PasswordFile",
                    ])
                    .arg(&password)
                    .args([
                        "-nolisten",
                        "tcp",
                        "-ac",
                        "-tst",
                        "-AllowOverride=",
                        "-AlwaysShared=1",
                    ])
                    .args(["-AcceptSetDesktopSize=0", "-UseBlacklist=0", "-noreset"])
                    .args(["-FrameRate", &frame_rate.to_string()])
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(fs::File::create(dir.path().join("log")).expect("created"))
                    .spawn()
                    .expect("tigervnc-standalone-server is installed");
                comes_up(&mut process, &dir.path().join("rfb")).then_some((process, display))
            })
            .expect("a free display number");
        Xvnc {
            process,
            dir,
            display,
        }
    }

    /// Kills it; does nothing the second time.
    pub fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("rfb")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        Path::join(self.dir.path(), name)
    }

    /// Runs an X client to its end.
    pub fn run(&self, program: &str, args: &[&str]) -> String {
        let output = Command::new(program)
            .args(args)
            .env("DISPLAY", &self.display)
            .output()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        assert!(output.status.success(), "{program}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Where the X server says that the pointer is.
    pub fn pointer(&self) -> (u32, u32) {
        let line = self.run("xdotool", &["getmouselocation"]);
        let number = |key: &str| {
            let rest = line.split(key).nth(1).expect("xdotool names it");
            rest.split_whitespace()
                .next()
                .expect("a number")
                .parse()
                .expect("a number")
        };
        (number("x:"), number("y:"))
    }
}

/// A display number without a lock or a socket, likely another one each time.
fn free_number() -> u32 {
    let free = |number: &u32| {
        !Path::new(&format!("/tmp/.X{number}-lock")).exists()
            && !Path::new(&format!("/tmp/.X11-unix/X{number}")).exists()
    };
    let nanos = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |now| now.subsec_nanos());
    let start = (nanos / 1000 + std::process::id()) % 20_000;
    (20_000 + start..).find(free).expect("numbers are many")
}

/// Waits until the server accepts RFB connections; `false` if it ends instead.
fn comes_up(process: &mut Child, rfb: &Path) -> bool {
    let until = Instant::now() + Duration::from_secs(20);
    // The socket is there a moment before anybody listens on it.
    while UnixStream::connect(rfb).is_err() {
        if process.try_wait().expect("our child").is_some() {
            return false;
        }
        assert!(Instant::now() < until, "Xvnc did not come up");
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

impl Drop for Xvnc {
    fn drop(&mut self) {
        self.end();
    }
}
