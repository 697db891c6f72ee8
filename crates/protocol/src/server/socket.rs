//! Unix sockets that nobody else can reach, not even for an instant.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use rustix::net::sockopt::set_socket_passcred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use thiserror::Error;

/// The longest path the kernel takes for a unix socket, in bytes, without its final zero.
pub const MAX_PATH: usize = 107;

/// Why a socket could not be bound.
#[derive(Debug, Error)]
pub enum BindError {
    /// The kernel takes no path of this length.
    #[error(
        "the socket path {} has {length} bytes, and the kernel allows {MAX_PATH}; set XDG_RUNTIME_DIR to a shorter directory of yours with mode 0700 (for example /run/user/$(id -u) or a directory made by mktemp -d) and try again",
        path.display()
    )]
    PathTooLong {
        /// The path that was to be bound.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
    },
    /// Binding failed.
    #[error("cannot bind {}: {source}", path.display())]
    Io {
        /// The path that was to be bound.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Refuses a path that no socket can have.
pub fn check_path(path: &Path) -> Result<(), BindError> {
    let length = path.as_os_str().len();
    if length > MAX_PATH {
        return Err(BindError::PathTooLong {
            path: path.to_owned(),
            length,
        });
    }
    Ok(())
}

/// Binds a listening socket at `path`, mode 0600 from its birth whatever the umask, in a directory
/// that the caller has verified ([`super::dirs`]). It is bound under a temporary name in a new 0700
/// directory beside `path` and renamed into place, so that whoever finds `path` finds a socket that
/// listens. An older socket of that name is replaced: hold the lock that guards it.
///
/// Senders' credentials are requested on the listener, so that accepted connections have them from
/// their first byte. The listener is non-blocking.
pub fn bind_private(path: &Path) -> Result<UnixListener, BindError> {
    check_path(path)?;
    let failed = |source: io::Error| BindError::Io {
        path: path.to_owned(),
        source,
    };
    let directory = path
        .parent()
        .ok_or_else(|| failed(io::Error::from(io::ErrorKind::InvalidInput)))?;
    let mut random = [0u8; 3];
    getrandom::fill(&mut random).map_err(|error| failed(io::Error::other(error)))?;
    let nursery = directory.join(format!(".{}", hex::encode(random)));
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&nursery)
        .map_err(failed)?;
    let bound = bind_within(&nursery, path);
    // After the rename it is empty, after a failure it may hold the socket.
    let _ = std::fs::remove_file(nursery.join("s"));
    let _ = std::fs::remove_dir(&nursery);
    bound.map_err(failed)
}

fn bind_within(nursery: &Path, path: &Path) -> io::Result<UnixListener> {
    // Bound by way of the directory's descriptor: the temporary path may be longer than `path`, and
    // longer than the kernel allows.
    let directory = std::fs::File::open(nursery)?;
    let temporary = format!("/proc/self/fd/{}/s", directory.as_raw_fd());
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    // Linux gives the file the mode of the socket at the instant of binding, less the umask: private
    // from birth without touching the umask, which belongs to all threads.
    fchmod(&socket, Mode::from_raw_mode(0o600))?;
    set_socket_passcred(&socket, true)?;
    bind(&socket, &SocketAddrUnix::new(temporary)?)?;
    listen(&socket, 128)?;
    std::fs::rename(nursery.join("s"), path)?;
    Ok(UnixListener::from(socket))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    use std::os::unix::net::UnixStream;

    #[test]
    fn private_from_birth_and_nothing_left_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("attach.sock");
        let before = rustix::process::umask(Mode::empty());
        let listener = bind_private(&path);
        rustix::process::umask(before);
        listener.unwrap();
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        assert!(metadata.file_type().is_socket());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn replaces_a_dead_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("attach.sock");
        drop(bind_private(&path).unwrap());
        UnixStream::connect(&path).unwrap_err();
        let _listener = bind_private(&path).unwrap();
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn the_longest_path_works_and_one_more_byte_is_explained() {
        let dir = tempfile::tempdir().unwrap();
        let room = MAX_PATH - dir.path().as_os_str().len() - 1;
        let longest = dir.path().join("s".repeat(room));
        let _listener = bind_private(&longest).unwrap();
        UnixStream::connect(&longest).unwrap();
        let message = bind_private(&dir.path().join("s".repeat(room + 1)))
            .unwrap_err()
            .to_string();
        assert!(message.contains("108 bytes") && message.contains("107"));
        assert!(message.contains("XDG_RUNTIME_DIR"), "{message}");
        assert!(message.contains(dir.path().to_str().unwrap()));
    }
}
