//! The viewer program: which one, and how to connect another.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::str::FromStr;
use std::{future, io};

use handover_host::system::users;
use handover_host::xvnc::find_program;
use handover_protocol::ErrorCode;
use tokio::process::{Child, Command};

use super::super::failure::Failure;

/// Viewers that are looked for, best first.
const KNOWN: [&str; 2] = ["xtigervncviewer", "vncviewer"];

/// The viewer that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// One that is installed, if there is a display.
    Auto,
    /// None.
    None,
    /// This one.
    Program(OsString),
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            "" => Err("a viewer is auto, none or a program".to_owned()),
            program => Ok(Self::Program(program.into())),
        }
    }
}

impl Choice {
    /// Whether the program that is asked for is there.
    pub fn check(&self) -> Result<(), Failure> {
        let Self::Program(program) = self else {
            return Ok(());
        };
        if find_program(&program.to_string_lossy()).is_some() {
            return Ok(());
        }
        let name = Path::new(program).display();
        let message =
            format!("there is no viewer {name}; install it, or choose another with --viewer");
        Err(Failure::new(ErrorCode::BadParams, message))
    }
}

/// Opens the viewer on `socket`; `None` if there is none to open.
pub fn open(choice: &Choice, socket: &str, with_input: bool) -> Result<Option<Child>, Failure> {
    let mut command = match choice {
        Choice::None => return Ok(None),
        Choice::Program(program) => Command::new(program),
        Choice::Auto => {
            let Some(program) = installed().filter(|_| has_display()) else {
                return Ok(None);
            };
            let mut command = Command::new(program);
            // The size belongs to the desktop, and other viewers stay.
            command.args(["-Shared", "-RemoteResize=0", "-SecurityTypes", "None"]);
            if !with_input {
                command.arg("-ViewOnly");
            }
            command
        }
    };
    // Its own process group: Ctrl-C and Ctrl-Z at the terminal are for us to deal with. What it
    // prints would break into our own lines.
    command
        .arg(socket)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true);
    let name = command.as_std().get_program().to_owned();
    command.spawn().map(Some).map_err(|error| {
        let name = Path::new(&name).display();
        let message = format!("cannot start the viewer {name}: {error}; choose one with --viewer");
        Failure::new(ErrorCode::Internal, message)
    })
}

/// Waits until the viewer is closed; for ever if there is none.
pub async fn closed(viewer: &mut Option<Child>) -> io::Result<ExitStatus> {
    match viewer {
        Some(viewer) => viewer.wait().await,
        None => future::pending().await,
    }
}

/// Whether a window can be opened here.
pub fn has_display() -> bool {
    std::env::var_os("DISPLAY").is_some_and(|display| !display.is_empty())
}

fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let candidates = KNOWN
        .iter()
        .flat_map(|name| dirs.iter().map(move |dir| dir.join(name)));
    candidates.into_iter().find(|program| program.is_file())
}

/// How a person connects a viewer to `socket`.
pub fn ways(socket: &str) -> String {
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let uid = rustix::process::getuid().as_raw();
    instructions(socket, users::find(uid).unwrap_or("USER"), &host)
}

fn instructions(socket: &str, user: &str, host: &str) -> String {
    format!(
        "connect a viewer to {socket}
  on this machine:   xtigervncviewer -Shared {socket}
  from another one:  ssh -N -L 5901:{socket} {user}@{host}
                     and beside it: xtigervncviewer -Shared 127.0.0.1::5901
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices() {
        assert_eq!("auto".parse(), Ok(Choice::Auto));
        assert_eq!("none".parse(), Ok(Choice::None));
        assert_eq!("/bin/v".parse(), Ok(Choice::Program("/bin/v".into())));
        assert!("".parse::<Choice>().is_err());
    }

    #[test]
    fn ways_to_connect() {
        insta::assert_snapshot!(instructions("/run/h/view-v1.sock", "ada", "engine"), @"
        connect a viewer to /run/h/view-v1.sock
          on this machine:   xtigervncviewer -Shared /run/h/view-v1.sock
          from another one:  ssh -N -L 5901:/run/h/view-v1.sock ada@engine
                             and beside it: xtigervncviewer -Shared 127.0.0.1::5901
        ");
    }
}
