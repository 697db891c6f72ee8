//! Clearing away what dead hosts left in the runtime directories.
//!
//! Whoever clears a session's directory holds that session's lock. A live host holds it for life, so
//! its files are never touched, whoever starts, stops or sweeps at the same time.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use handover_protocol::SessionId;

use crate::session::is_session_id;
use crate::system::dirs::{DirError, Roots, check_private};
use crate::system::lock::FileLock;

/// Sweeps every session of this user whose host is dead. Answers which were swept. Desktops that
/// survive their host keep their files, and their sessions can be brought back.
pub fn sweep_dead(roots: &Roots) -> Result<Vec<SessionId>, DirError> {
    let state_root = roots.state()?;
    let mut swept = Vec::new();
    for root in roots.runtime_candidates() {
        if check_private(&root, "XDG_RUNTIME_DIR").is_err() {
            continue;
        }
        let Ok(entries) = std::fs::read_dir(&root) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(id) = name.to_str().filter(|name| is_session_id(name)) else {
                continue;
            };
            let state_dir = state_root.join(id);
            // Without its state directory there is no lock to hold, and its host may be using another
            // state directory than ours.
            if !state_dir.is_dir() {
                continue;
            }
            let Ok(_lock) = FileLock::try_acquire(&state_dir.join("host.lock")) else {
                continue;
            };
            match sweep_directory(&entry.path()) {
                Ok(()) => swept.push(SessionId::from(id)),
                Err(error) => {
                    tracing::warn!(directory = %entry.path().display(), %error, "cannot sweep");
                }
            }
        }
    }
    Ok(swept)
}

/// Sweeps one session's runtime directory; the caller holds its lock. Everything goes, unless a keeper
/// still listens in it: then its desktops' files stay.
pub(crate) fn sweep_directory(directory: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !has_living_keeper(directory) {
        return std::fs::remove_dir_all(directory);
    }
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Dotted names are those of files and sockets that were not finished. Agents end with their host.
        let is_the_hosts = ["attach.", "view-", "agent-", "."]
            .iter()
            .any(|prefix| name.starts_with(prefix));
        if !is_the_hosts {
            continue;
        }
        if std::fs::symlink_metadata(&path)?.is_dir() {
            std::fs::remove_dir_all(&path)?;
        } else {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Whether some keeper of the session in `directory` still listens.
pub(crate) fn has_living_keeper(directory: &Path) -> bool {
    keeper_sockets(directory)
        .iter()
        .any(|socket| UnixStream::connect(socket).is_ok())
}

fn keeper_sockets(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with("keeper-") && name.ends_with(".sock"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;
    use crate::system::socket::bind_private;

    fn roots(dir: &Path) -> Roots {
        std::os::unix::fs::chown(dir, None, None).unwrap();
        Roots::at(dir, dir)
    }

    fn files(session: &Session) -> (PathBuf, PathBuf) {
        let paths = session.paths();
        std::fs::write(paths.manifest(), b"{}").unwrap();
        (paths.manifest(), paths.attach_socket())
    }

    #[test]
    fn a_live_hosts_files_are_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let roots = roots(dir.path());
        let session = Session::create(&roots, dir.path(), None).unwrap();
        let (manifest, socket) = files(&session);
        let _listener = bind_private(&socket).unwrap();
        assert_eq!(sweep_dead(&roots).unwrap(), []);
        assert!(manifest.exists() && socket.exists());
    }

    #[test]
    fn a_dead_hosts_files_go_and_a_second_sweep_finds_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let roots = roots(dir.path());
        let session = Session::create(&roots, dir.path(), None).unwrap();
        let id = session.info().id.clone();
        let runtime = session.paths().runtime_dir.clone();
        files(&session);
        drop(session);
        assert_eq!(sweep_dead(&roots).unwrap(), [id]);
        assert!(!runtime.exists());
        assert_eq!(sweep_dead(&roots).unwrap(), []);
    }

    #[test]
    fn surviving_desktops_keep_their_files() {
        let dir = tempfile::tempdir().unwrap();
        let roots = roots(dir.path());
        let session = Session::create(&roots, dir.path(), None).unwrap();
        let id = session.info().id.clone();
        let (manifest, socket) = files(&session);
        let paths = session.paths().clone();
        let keeper = bind_private(&paths.keeper_socket(&"d1".into())).unwrap();
        std::fs::create_dir(paths.desktop_dir(&"d1".into())).unwrap();
        let agent = paths.agent_keeper_socket(&"abc234".into());
        let _agents_keeper = bind_private(&agent).unwrap();
        drop(bind_private(&socket).unwrap());
        drop(session);
        sweep_dead(&roots).unwrap();
        assert!(!manifest.exists() && !socket.exists() && !agent.exists());
        assert!(paths.keeper_socket(&"d1".into()).exists());
        assert!(paths.desktop_dir(&"d1".into()).exists());
        let again = Session::reopen(&roots, &id).unwrap();
        assert_eq!(again.paths(), &paths);
        drop(again);
        drop(keeper);
        sweep_dead(&roots).unwrap();
        assert!(!paths.runtime_dir.exists());
    }

    #[test]
    fn an_unknown_sessions_directory_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let roots = roots(dir.path());
        let foreign = roots.runtime().unwrap().join("abcdefgh");
        std::fs::create_dir(&foreign).unwrap();
        assert_eq!(sweep_dead(&roots).unwrap(), []);
        assert!(foreign.exists());
    }

    /// Starts, sweeps and ends at random: whoever has the lock finds its own files as it left them.
    #[test]
    fn in_any_interleaving_the_holder_keeps_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let roots = roots(dir.path());
        let first = Session::create(&roots, dir.path(), None).unwrap();
        let id = first.info().id.clone();
        drop(first);
        let until = std::time::Instant::now() + std::time::Duration::from_millis(500);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while std::time::Instant::now() < until {
                        sweep_dead(&roots).unwrap();
                    }
                });
            }
            for _ in 0..3 {
                scope.spawn(|| {
                    while std::time::Instant::now() < until {
                        let Ok(session) = Session::reopen(&roots, &id) else {
                            continue;
                        };
                        let (manifest, socket) = files(&session);
                        let listener = bind_private(&socket).unwrap();
                        for _ in 0..20 {
                            assert!(manifest.exists());
                            UnixStream::connect(&socket).unwrap();
                            std::thread::yield_now();
                        }
                        drop(listener);
                    }
                });
            }
        });
    }
}
