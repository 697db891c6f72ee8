//! `attach.json`, kept up to date by whoever serves the socket.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;

use super::atomic_file::replace_volatile;
use crate::{Manifest, Timestamp};

/// At most one write in this time.
const PACE: Duration = Duration::from_millis(200);

/// Keeps `attach.json` up to date. Clones share one file.
#[derive(Debug, Clone)]
pub struct ManifestWriter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    manifest: Mutex<Manifest>,
    file: Mutex<File>,
    changed: Notify,
    closing: Notify,
}

/// Whether the file is still ours to write.
#[derive(Debug, PartialEq, Eq)]
enum File {
    Kept,
    Closed,
}

impl ManifestWriter {
    /// Writes `manifest` to `path` at once, mode 0600, and keeps it from then on. Must be called within
    /// a tokio runtime.
    pub fn start(path: PathBuf, manifest: Manifest) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            path,
            manifest: Mutex::new(manifest),
            file: Mutex::new(File::Kept),
            changed: Notify::new(),
            closing: Notify::new(),
        });
        shared.write()?;
        tokio::spawn(follow(Arc::clone(&shared)));
        Ok(Self { shared })
    }

    /// Changes the manifest. The file follows within 200 ms, one write for all changes in that time;
    /// `updatedAt` is set then. `change` must not call back.
    pub fn update(&self, change: impl FnOnce(&mut Manifest)) {
        change(&mut self.shared.manifest());
        self.shared.changed.notify_one();
    }

    /// Writes the file now, for those who are told of something that it must show already.
    ///
    /// # Errors
    /// What writing said.
    pub fn flush(&self) -> io::Result<()> {
        self.shared.write()
    }

    /// Removes the file and stops writing; when this returns it is gone for good.
    pub fn close(&self) {
        // Waits for a write that is under way.
        *self.shared.file() = File::Closed;
        self.shared.closing.notify_one();
        // Whoever cannot be asked any more will find the manifest dead by its pid.
        let _ = std::fs::remove_file(&self.shared.path);
    }
}

impl Shared {
    // Nothing panics while it holds one of these locks, but for what `change` may do: then the manifest
    // is as far as that went.
    fn manifest(&self) -> MutexGuard<'_, Manifest> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> io::Result<()> {
        let file = self.file();
        if *file == File::Closed {
            return Ok(());
        }
        let text = {
            let mut manifest = self.manifest();
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            manifest.updated_at = Timestamp::from_unix(now.unwrap_or_default());
            serde_json::to_vec_pretty(&*manifest)?
        };
        replace_volatile(&self.path, &text)
    }
}

async fn follow(shared: Arc<Shared>) {
    loop {
        tokio::select! {
            // A change during the pause below is remembered.
            () = shared.changed.notified() => {}
            () = shared.closing.notified() => return,
        }
        if let Err(error) = shared.write() {
            tracing::warn!(path = %shared.path.display(), %error, "the manifest is out of date");
            // A full disk passes; try again after the pause.
            shared.changed.notify_one();
        }
        tokio::select! {
            () = tokio::time::sleep(PACE) => {}
            () = shared.closing.notified() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentStatus, ManifestAgent};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;
    use std::time::Instant;

    fn manifest() -> Manifest {
        Manifest {
            protocol: 1,
            session_id: "k3f9x2ab".into(),
            name: "a name".into(),
            project_dir: "/home/me/project".into(),
            pid: std::process::id(),
            start_ticks: 1,
            boot_id: "b".into(),
            socket_path: "/run/x/attach.sock".into(),
            herdr_pane_id: None,
            updated_at: Timestamp(0),
            agents: Vec::new(),
            desktops: Vec::new(),
        }
    }

    fn agent(number: usize) -> ManifestAgent {
        ManifestAgent {
            id: format!("a{number}").into(),
            kind: "toy".into(),
            status: AgentStatus::Running,
            parent: None,
            output_file: None,
            pane_id: None,
        }
    }

    fn read(path: &Path) -> Manifest {
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    #[tokio::test]
    async fn a_thousand_changes_are_few_writes_each_whole_and_the_last_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("attach.json");
        let writer = ManifestWriter::start(path.clone(), manifest()).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let start = Instant::now();
        let mut inodes = Vec::new();
        for number in 1..=1000 {
            writer.update(|manifest| {
                manifest.name = format!("change {number}");
                manifest.agents = (0..number).map(agent).collect();
            });
            // Whichever state it shows, it is one that there was.
            let shown = read(&path);
            let changes = shown.agents.len();
            if changes > 0 {
                assert_eq!(shown.name, format!("change {changes}"));
            }
            assert!(changes <= number);
            inodes.push(std::fs::metadata(&path).unwrap().ino());
            tokio::task::yield_now().await;
        }
        inodes.dedup();
        let paces = start.elapsed().as_millis() / PACE.as_millis();
        assert!(inodes.len() as u128 <= paces + 2, "{} writes", inodes.len());
        let last = Instant::now();
        while read(&path).name != "change 1000" {
            assert!(last.elapsed() < Duration::from_secs(20));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn once_closed_it_is_gone_for_good() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("attach.json");
        let writer = ManifestWriter::start(path.clone(), manifest()).unwrap();
        writer.update(|manifest| manifest.agents.push(agent(1)));
        writer.clone().close();
        writer.update(|manifest| manifest.name = "late".into());
        for _ in 0..10 {
            tokio::task::yield_now().await;
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }
}
