//! A real Xvnc without a host around it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

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
        let number = dir.path().join("number");
        let process = Command::new("Xtigervnc")
            .args([
                "-displayfd",
                "1",
                "-geometry",
                "1280x800",
                "-depth",
                "24",
                "-rfbport",
                "-1",
            ])
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
            .stdout(fs::File::create(&number).expect("created"))
            .stderr(fs::File::create(dir.path().join("log")).expect("created"))
            .spawn()
            .expect("tigervnc-standalone-server is installed");
        let until = Instant::now() + Duration::from_secs(20);
        let display = loop {
            let written = fs::read_to_string(&number).expect("readable");
            if written.ends_with('\n') {
                break format!(":{}", written.trim());
            }
            assert!(Instant::now() < until, "Xvnc did not come up");
            std::thread::sleep(Duration::from_millis(5));
        };
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

impl Drop for Xvnc {
    fn drop(&mut self) {
        self.end();
    }
}
