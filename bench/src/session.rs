//! A live session.

use std::{fs, path::PathBuf, time::Duration};

use handover_protocol::Method;
use serde_json::{Value, json};

use crate::{
    Outcome,
    place::{Place, eventually, finish, path},
    screen::Display,
    wire::Wire,
};

/// How long a session may take to come up.
const UP: Duration = Duration::from_secs(30);

/// A session in a place of its own, ended when dropped.
pub struct Session {
    /// What `up --json` printed.
    said: Value,
    place: Place,
}

impl Session {
    /// A session with one desktop of this size, such as `1280x800`.
    pub fn up(size: &str) -> Outcome<Self> {
        Self::with(Place::new()?, &["--desktop", "--size", size])
    }

    /// A session in this place, with these arguments of `up`.
    pub fn with(place: Place, arguments: &[&str]) -> Outcome<Self> {
        let mut command = place.handover()?;
        let output = finish(command.args(["up", "--json"]).args(arguments), UP)?;
        Ok(Self {
            said: serde_json::from_slice(&output.stdout)?,
            place,
        })
    }

    /// Ends the session. Its name, its directory, and the place for whatever comes next.
    pub fn down(self) -> Outcome<(String, PathBuf, Place)> {
        finish(self.place.handover()?.arg("down"), UP)?;
        Ok((
            self.id()?.to_owned(),
            path(&self.said["stateDir"])?,
            self.place,
        ))
    }

    /// Its id.
    pub fn id(&self) -> Outcome<&str> {
        self.said["sessionId"]
            .as_str()
            .ok_or_else(|| "`up` named no session".into())
    }

    /// Where it runs.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The attach socket.
    pub fn socket(&self) -> Outcome<PathBuf> {
        path(&self.said["socketPath"])
    }

    /// The host's process id.
    pub fn host(&self) -> Outcome<u64> {
        self.said["pid"]
            .as_u64()
            .ok_or_else(|| "`up` named no pid".into())
    }

    /// A new connection.
    pub fn wire(&self) -> Outcome<Wire> {
        Wire::connect(&self.socket()?)
    }

    /// How applications reach the desktop, learnt as they learn it: from their environment.
    pub fn display(&self) -> Outcome<Display> {
        let told = self.place.path().join("display");
        let script = format!(
            "printf '%s\\n' \"$DISPLAY\" \"$XAUTHORITY\" >{0}.new && mv {0}.new {0}",
            told.display()
        );
        let launch = json!({"desktop": "d1", "command": ["sh", "-c", script]});
        self.wire()?.call(Method::DesktopLaunch, launch)?;
        let text = eventually("an application tells its display", UP, || {
            fs::read_to_string(&told).ok()
        })?;
        let mut lines = text.lines();
        let (Some(name), Some(authority)) = (lines.next(), lines.next()) else {
            return Err("an application of the desktop has no DISPLAY and XAUTHORITY".into());
        };
        Ok(Display {
            name: name.to_owned(),
            authority: Some(authority.into()),
        })
    }
}

/// The socket and the name of a new viewer of a desktop.
pub fn viewer(wire: &Wire, desktop: &str) -> Outcome<(PathBuf, Value)> {
    let opened = wire.call(Method::ViewOpen, json!({"desktop": desktop}))?;
    Ok((path(&opened["socketPath"])?, opened["viewer"].clone()))
}
