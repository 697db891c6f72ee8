//! `attach.json`: written by a host, read by whoever looks for one.

use std::path::PathBuf;

use handover_protocol::Manifest;

use crate::system::dirs::Roots;

/// A live host.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// What it says about itself.
    pub manifest: Manifest,
    /// Where it says it.
    pub path: PathBuf,
}

/// A manifest, or a place of manifests, that does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The file or directory.
    pub path: PathBuf,
    /// Why, for a person.
    pub reason: String,
}

/// All that a search found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Discovery {
    /// Live hosts of this user, newest process first.
    pub live: Vec<Found>,
    /// What was passed over.
    pub skipped: Vec<Skipped>,
}

/// Searches every runtime directory of this user for live hosts, as the environment names them.
pub fn discover() -> Discovery {
    discover_in(&Roots::from_env())
}

/// [`discover`] at given places.
pub fn discover_in(_roots: &Roots) -> Discovery {
    unimplemented!()
}

/// Keeps `attach.json` up to date. Clones share one file.
#[derive(Debug, Clone)]
pub struct ManifestWriter {}

impl ManifestWriter {
    /// Writes `manifest` to `path` at once and keeps it from then on.
    pub fn start(_path: PathBuf, _manifest: Manifest) -> std::io::Result<Self> {
        unimplemented!()
    }

    /// Changes the manifest. The file follows within 200 ms, with one write for all changes in that
    /// time; `updatedAt` is set then.
    pub fn update(&self, _change: impl FnOnce(&mut Manifest)) {
        unimplemented!()
    }

    /// Removes the file and stops writing.
    pub async fn close(&self) {
        unimplemented!()
    }
}
