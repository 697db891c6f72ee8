//! `attach.json`: written by a host, read by whoever looks for one.

use std::cmp::Reverse;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use handover_protocol::Manifest;
use handover_protocol::server::LOCK;
pub use handover_protocol::server::manifest::ManifestWriter;
use rustix::process::test_kill_process;

use crate::system::dirs::{Roots, check_private};
use crate::system::process::{self, Stat};

/// A live host.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// What it says about itself.
    pub manifest: Manifest,
    /// Where it says it.
    pub path: PathBuf,
}

impl Found {
    /// Whether it is not a host but a program that serves agents of its own: such a one guards its
    /// directory by a lock in it, where a host's is beside the record.
    pub fn is_embedded(&self) -> bool {
        self.path.with_file_name(LOCK).exists()
    }
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
pub fn discover_in(roots: &Roots) -> Discovery {
    discover_below(&roots.runtime_candidates())
}

/// Searches directories of hosts; one that cannot be trusted is passed over, and no other for it.
fn discover_below(directories: &[PathBuf]) -> Discovery {
    let mut discovery = Discovery::default();
    for root in directories {
        if std::fs::symlink_metadata(root).is_err() {
            continue;
        }
        if let Err(error) = check_private(root, "XDG_RUNTIME_DIR") {
            discovery.skip(root, error.to_string());
            continue;
        }
        let entries = match std::fs::read_dir(root) {
            Ok(entries) => entries,
            Err(error) => {
                discovery.skip(root, error.to_string());
                continue;
            }
        };
        for entry in entries.flatten() {
            let path = entry.path().join("attach.json");
            match read(&path) {
                Ok(Some(manifest)) if is_live(&manifest) => {
                    discovery.live.push(Found { manifest, path });
                }
                Ok(Some(manifest)) => {
                    discovery.skip(&path, format!("its host (pid {}) has ended", manifest.pid));
                }
                // A session that is being made or was just ended.
                Ok(None) => {}
                Err(reason) => discovery.skip(&path, reason),
            }
        }
    }
    discovery
        .live
        .sort_by_key(|found| Reverse(found.manifest.start_ticks));
    discovery
}

impl Discovery {
    fn skip(&mut self, path: &Path, reason: String) {
        self.skipped.push(Skipped {
            path: path.to_owned(),
            reason,
        });
    }
}

/// Whether the host that wrote `manifest` still runs: its pid with its start time, in this boot. A
/// process that we may not look at counts as running.
pub fn is_live(manifest: &Manifest) -> bool {
    if process::boot_id().is_ok_and(|boot_id| boot_id != manifest.boot_id) {
        return false;
    }
    match Stat::of(manifest.pid) {
        Ok(stat) => stat.is_living() && stat.start_ticks == manifest.start_ticks,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => true,
        // `/proc` may be mounted so that it hides the processes of others.
        Err(_) => process::to_raw(manifest.pid)
            .is_ok_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::PERM)),
    }
}

/// Reads one manifest; `None` if there is none.
fn read(path: &Path) -> Result<Option<Manifest>, String> {
    const MAX_BYTES: u64 = 4 << 20;
    let file = match File::options()
        .read(true)
        // Neither a link nor a pipe that would block us.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
    {
        Ok(file) => file,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    };
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("it belongs to uid {}", metadata.uid()));
    }
    let mut text = Vec::new();
    file.take(MAX_BYTES)
        .read_to_end(&mut text)
        .map_err(|error| error.to_string())?;
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| format!("it cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::clock;
    use crate::system::process::ProcessIdentity;
    use handover_protocol::SessionId;
    use std::os::unix::fs::PermissionsExt;

    fn manifest() -> Manifest {
        let own = ProcessIdentity::own().unwrap();
        Manifest {
            protocol: 1,
            session_id: SessionId::from("k3f9x2ab"),
            name: "a name".into(),
            project_dir: "/home/me/project".into(),
            pid: own.pid,
            start_ticks: own.start_ticks,
            boot_id: process::boot_id().unwrap().into(),
            socket_path: "/run/x/attach.sock".into(),
            herdr_pane_id: None,
            updated_at: clock::wall(),
            agents: Vec::new(),
            desktops: Vec::new(),
        }
    }

    #[test]
    fn finds_the_living_and_explains_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::at(dir.path(), dir.path());
        let root = roots.runtime().unwrap();
        let place = |name: &str, text: &[u8]| {
            std::fs::create_dir(root.join(name)).unwrap();
            std::fs::write(root.join(name).join("attach.json"), text).unwrap();
        };
        let text = |manifest: &Manifest| serde_json::to_vec(manifest).unwrap();
        let live = manifest();
        place("live", &text(&live));
        place(
            "other-start",
            &text(&Manifest {
                start_ticks: live.start_ticks + 1,
                ..live.clone()
            }),
        );
        place(
            "other-boot",
            &text(&Manifest {
                boot_id: "gone".into(),
                ..live.clone()
            }),
        );
        place("half", &text(&live)[..40]);
        place("empty", b"");
        place("noise", &[0xff; 512]);
        std::fs::create_dir(root.join("none")).unwrap();
        std::fs::create_dir_all(root.join("folder/attach.json")).unwrap();
        std::fs::create_dir(root.join("link")).unwrap();
        std::os::unix::fs::symlink(root.join("live/attach.json"), root.join("link/attach.json"))
            .unwrap();

        let found = discover_in(&roots);
        let ours = |path: &Path| path.starts_with(dir.path());
        let live_paths: Vec<_> = found
            .live
            .iter()
            .filter(|found| ours(&found.path))
            .map(|found| found.path.clone())
            .collect();
        assert_eq!(live_paths, [root.join("live/attach.json")]);
        assert_eq!(found.skipped.iter().filter(|s| ours(&s.path)).count(), 7);
        assert!(
            found
                .skipped
                .iter()
                .all(|skipped| !skipped.reason.is_empty())
        );
    }

    #[test]
    fn two_roots_at_once_and_none_that_others_can_reach() {
        let dir = tempfile::tempdir().unwrap();
        let root = |name: &str, mode: u32| {
            let root = dir.path().join(name);
            std::fs::create_dir_all(root.join("s")).unwrap();
            let manifest = Manifest {
                session_id: SessionId::from(name),
                ..manifest()
            };
            let text = serde_json::to_vec(&manifest).unwrap();
            std::fs::write(root.join("s/attach.json"), text).unwrap();
            std::fs::set_permissions(&root, std::fs::Permissions::from_mode(mode)).unwrap();
            root
        };
        let open = root("open", 0o755);
        // What another user put where ours should be; only root can try that.
        let foreign = root("foreign", 0o700);
        let foreign_manifest = foreign.join("s/attach.json");
        let made = std::os::unix::fs::chown(&foreign_manifest, Some(12_345), None).is_ok();
        let roots = [
            root("first", 0o700),
            dir.path().join("absent"),
            open.clone(),
            foreign,
            root("second", 0o700),
        ];
        let found = discover_below(&roots);
        let live = found.live.iter();
        let live: Vec<&str> = live.map(|f| f.manifest.session_id.as_str()).collect();
        let skipped: Vec<&Path> = found.skipped.iter().map(|s| s.path.as_path()).collect();
        if made {
            assert_eq!(live, ["first", "second"]);
            assert_eq!(skipped, [&*open, &*foreign_manifest]);
        } else {
            assert_eq!(live, ["first", "foreign", "second"]);
            assert_eq!(skipped, [&*open]);
        }
    }
}
