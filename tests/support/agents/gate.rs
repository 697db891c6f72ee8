//! A shell command that runs until the test lets it end.

use std::fs;
use std::path::PathBuf;

use crate::support::{LONG, Place, eventually};

/// A shell command that says when it runs, and runs until the test opens the gate.
pub struct Gate {
    begun: PathBuf,
    open: PathBuf,
}

impl Gate {
    /// A closed gate in `place`.
    pub fn new(place: &Place) -> Self {
        Self {
            begun: place.path().join("gate-begun"),
            open: place.path().join("gate-open"),
        }
    }

    /// The command.
    pub fn command(&self) -> String {
        format!(
            "touch {}; until [ -e {} ]; do sleep 0.05; done; echo went through",
            self.begun.display(),
            self.open.display()
        )
    }

    /// Whether the command has run.
    pub fn has_begun(&self) -> bool {
        self.begun.exists()
    }

    /// Waits until the command runs.
    pub fn reached(&self) {
        eventually("the tool runs", LONG, || self.has_begun().then_some(()));
    }

    /// Lets the command end.
    pub fn open(&self) {
        fs::write(&self.open, "").expect("a file");
    }

    /// What the command lines of its processes contain.
    pub fn mark(&self) -> String {
        self.open.display().to_string()
    }
}
