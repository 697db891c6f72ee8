//! A display server that is not the host's own, to compare ways to it.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    Outcome,
    place::{Place, eventually},
    screen::Display,
};

/// How long it may take to come up.
const LIMIT: Duration = Duration::from_secs(10);

/// A display server of our own that the host is attached to and that we may connect to as well.
pub struct Server {
    process: Child,
    display: String,
    /// Its socket, on which nobody has to say who they are.
    pub socket: PathBuf,
    _place: Place,
}

impl Server {
    /// Starts one of this size that looks for changes so many times a second.
    pub fn start(size: &str, frame_rate: u32) -> Outcome<Self> {
        let place = Place::new()?;
        let socket = place.path().join("x.sock");
        let mut process = Command::new("Xtigervnc")
            .args(["-displayfd", "1", "-geometry", size, "-depth", "24"])
            .args(["-rfbport", "-1", "-rfbunixmode", "0600", "-rfbunixpath"])
            .arg(&socket)
            .args([
                "-SecurityTypes",
                "None",
                "-nolisten",
                "tcp",
                "-nolisten",
                "local",
            ])
            .args([
                "-tst",
                "-noreset",
                "-AlwaysShared=1",
                "-AcceptSetDesktopSize=0",
            ])
            .args(["-FrameRate", &frame_rate.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdout = process.stdout.take().ok_or("no pipe")?;
        let mut server = Self {
            process,
            display: String::new(),
            socket,
            _place: place,
        };
        let mut number = String::new();
        // It closes its end when it dies, so this cannot wait for ever.
        BufReader::new(stdout).read_line(&mut number)?;
        server.display = format!(":{}", number.trim());
        let socket: &Path = &server.socket;
        eventually("the display server listens", LIMIT, || {
            socket.exists().then_some(())
        })?;
        Ok(server)
    }

    /// How applications reach it.
    pub fn display(&self) -> Display {
        Display {
            name: self.display.clone(),
            authority: None,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It removes its lock and sockets when asked to end; the place kills what does not.
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let process = &mut self.process;
        let _ = eventually("the display server ends", LIMIT, || {
            process.try_wait().ok().flatten()
        });
    }
}
