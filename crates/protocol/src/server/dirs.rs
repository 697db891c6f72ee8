//! Where sessions live, and whether these places can be trusted.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a directory cannot be used. Every message names the directory and the remedy.
#[derive(Debug, Error)]
pub enum DirError {
    /// A symbolic link, a file or a device stands where a directory of ours should be.
    #[error("{} is not a real directory (symbolic links are refused here); remove it or point {variable} elsewhere", path.display())]
    NotADirectory {
        /// The place.
        path: PathBuf,
        /// The environment variable that chose it.
        variable: &'static str,
    },
    /// The directory belongs to another user.
    #[error("{} belongs to uid {owner}, not to you (uid {uid}); point {variable} to a directory of yours", path.display())]
    NotOurs {
        /// The place.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who we are.
        uid: u32,
        /// The environment variable that chose it.
        variable: &'static str,
    },
    /// Others may enter or write.
    #[error("{} has mode {mode:04o}, others can reach it; run: chmod {wanted} {}", path.display(), path.display())]
    TooOpen {
        /// The place.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// What would do, for `chmod`.
        wanted: &'static str,
    },
    /// The environment names no place.
    #[error("neither XDG_STATE_HOME nor HOME is an absolute path; set one of them")]
    NoHome,
    /// The kernel refused.
    #[error("cannot use the directory {}: {source}", path.display())]
    Io {
        /// The place.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Where everything of this user lives: taken from the environment once, so that a test can have its
/// own and nothing reads the environment later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    uid: u32,
    state_home: Option<PathBuf>,
    runtime_dir: Option<PathBuf>,
}

impl Roots {
    /// The places that this process's environment names.
    pub fn from_env() -> Self {
        let absolute = |name| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        Self {
            uid: own_uid(),
            state_home: absolute("XDG_STATE_HOME")
                .or_else(|| absolute("HOME").map(|home| home.join(".local/state"))),
            runtime_dir: absolute("XDG_RUNTIME_DIR"),
        }
    }

    /// Roots at given places, as if the environment named them.
    pub fn at(state_home: &Path, runtime_dir: &Path) -> Self {
        Self {
            uid: own_uid(),
            state_home: Some(state_home.to_owned()),
            runtime_dir: Some(runtime_dir.to_owned()),
        }
    }

    /// `$XDG_STATE_HOME/handover/sessions`, else `~/.local/state/handover/sessions`; made if absent,
    /// each part from `handover` on checked.
    pub fn state(&self) -> Result<PathBuf, DirError> {
        let home = self.state_home.as_deref().ok_or(DirError::NoHome)?;
        // The XDG specification asks for 0700 where a program has to make these.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(home)
            .map_err(|source| DirError::Io {
                path: home.to_owned(),
                source,
            })?;
        // The home of our state is the user's own arrangement: it may be readable by others and lie
        // behind links, but nobody else may be able to exchange what is in it.
        let resolved = home.canonicalize().map_err(|source| DirError::Io {
            path: home.to_owned(),
            source,
        })?;
        check(&resolved, "XDG_STATE_HOME", 0o022, "go-w")?;
        let root = home.join("handover");
        private_dir(&root, "XDG_STATE_HOME")?;
        let sessions = root.join("sessions");
        private_dir(&sessions, "XDG_STATE_HOME")?;
        Ok(sessions)
    }

    /// The directory below which a new host puts its sockets: `$XDG_RUNTIME_DIR/handover` if that
    /// directory exists, else `/run/user/UID/handover` if that exists, else `/tmp/handover-UID`.
    /// Made if absent, and ours alone ([`check_private`]); the directory that the environment names
    /// must be real, ours and not writable by others. A place that exists but fails the check is an
    /// error, never a reason to go on to the next.
    pub fn runtime(&self) -> Result<PathBuf, DirError> {
        for base in self.runtime_bases() {
            match std::fs::symlink_metadata(&base) {
                Ok(_) => {
                    check(&base, "XDG_RUNTIME_DIR", 0o022, "go-w")?;
                    let root = base.join("handover");
                    private_dir(&root, "XDG_RUNTIME_DIR")?;
                    return Ok(root);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(DirError::Io { path: base, source }),
            }
        }
        let root = self.fallback();
        private_dir(&root, "XDG_RUNTIME_DIR")?;
        Ok(root)
    }

    /// All the directories in which hosts of this user may have put their sockets, whether or not
    /// they exist or can be trusted: a client searches each that passes [`check_private`].
    pub fn runtime_candidates(&self) -> Vec<PathBuf> {
        let mut candidates: Vec<PathBuf> = Vec::new();
        for base in self.runtime_bases() {
            let root = base.join("handover");
            if !candidates.contains(&root) {
                candidates.push(root);
            }
        }
        candidates.push(self.fallback());
        candidates
    }

    fn runtime_bases(&self) -> impl Iterator<Item = PathBuf> {
        let system = PathBuf::from(format!("/run/user/{}", self.uid));
        self.runtime_dir.clone().into_iter().chain([system])
    }

    fn fallback(&self) -> PathBuf {
        PathBuf::from(format!("/tmp/handover-{}", self.uid))
    }
}

/// Makes `path` with mode 0700 if it is absent, whatever the umask, and checks it. Its parent must
/// exist and have been checked.
pub fn private_dir(path: &Path, variable: &'static str) -> Result<(), DirError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => {
            return Err(DirError::Io {
                path: path.to_owned(),
                source,
            });
        }
    }
    check_private(path, variable)
}

/// Checks that `path` itself is a real directory, ours, with no permission for anybody else.
/// `variable` names the environment variable that chose it, for the message.
pub fn check_private(path: &Path, variable: &'static str) -> Result<(), DirError> {
    check(path, variable, 0o077, "0700")
}

fn check(
    path: &Path,
    variable: &'static str,
    forbidden: u32,
    wanted: &'static str,
) -> Result<(), DirError> {
    let metadata = std::fs::symlink_metadata(path).map_err(|source| DirError::Io {
        path: path.to_owned(),
        source,
    })?;
    if !metadata.is_dir() {
        return Err(DirError::NotADirectory {
            path: path.to_owned(),
            variable,
        });
    }
    let uid = own_uid();
    if metadata.uid() != uid {
        return Err(DirError::NotOurs {
            path: path.to_owned(),
            owner: metadata.uid(),
            uid,
            variable,
        });
    }
    if metadata.mode() & forbidden != 0 {
        return Err(DirError::TooOpen {
            path: path.to_owned(),
            mode: metadata.mode() & 0o7777,
            wanted,
        });
    }
    Ok(())
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn chmod(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn makes_private_directories_whatever_the_umask() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::at(&dir.path().join("state"), dir.path());
        let before = rustix::process::umask(rustix::fs::Mode::empty());
        let made = (roots.state(), roots.runtime());
        rustix::process::umask(before);
        for path in [made.0.unwrap(), made.1.unwrap()] {
            let mode = std::fs::metadata(&path).unwrap().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", path.display());
        }
    }

    #[test]
    fn refuses_links_files_and_open_directories() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        std::fs::create_dir(&real).unwrap();
        chmod(&real, 0o700);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let state = dir.path().join("state");
        let refused = |runtime: &Path| Roots::at(&state, runtime).runtime().unwrap_err();
        assert!(matches!(refused(&link), DirError::NotADirectory { .. }));

        std::os::unix::fs::symlink(dir.path(), real.join("handover")).unwrap();
        assert!(matches!(refused(&real), DirError::NotADirectory { .. }));
        std::fs::remove_file(real.join("handover")).unwrap();
        std::fs::write(real.join("handover"), b"").unwrap();
        assert!(matches!(refused(&real), DirError::NotADirectory { .. }));
        std::fs::remove_file(real.join("handover")).unwrap();

        chmod(&real, 0o770);
        let message = refused(&real).to_string();
        assert!(message.contains("chmod go-w"), "{message}");
        chmod(&real, 0o755);
        std::fs::create_dir(real.join("handover")).unwrap();
        let message = refused(&real).to_string();
        assert!(message.contains("chmod 0700"), "{message}");
    }

    #[test]
    fn a_missing_runtime_directory_is_no_error_and_all_places_are_searched() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::at(dir.path(), &dir.path().join("absent"));
        let candidates = roots.runtime_candidates();
        assert_eq!(candidates.len(), 3);
        assert_eq!(candidates[0], dir.path().join("absent/handover"));
        assert!(candidates[2].starts_with("/tmp"));
    }

    #[test]
    fn another_users_directory_is_refused() {
        if own_uid() != 0 {
            return; // Only root can give a directory away.
        }
        let dir = tempfile::tempdir().unwrap();
        let theirs = dir.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        chmod(&theirs, 0o700);
        std::os::unix::fs::chown(&theirs, Some(65534), Some(65534)).unwrap();
        assert!(matches!(
            Roots::at(dir.path(), &theirs).runtime(),
            Err(DirError::NotOurs { owner: 65534, .. })
        ));
    }
}
