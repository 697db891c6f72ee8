//! The standard streams of a program below a keeper, in the hands of the host.
//!
//! Named pipes, since the keeper that opens the program's ends is another process. The host opens its
//! own ends first, so that the keeper never has to wait for them; their names are gone when the program
//! runs.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, mkfifoat};
use thiserror::Error;
use tokio::net::unix::pipe::{self, OpenOptions};

use super::wire::Fifos;
use crate::system::dirs::{DirError, check_private};

/// Why there are no pipes.
#[derive(Debug, Error)]
pub enum PipesError {
    /// The directory they were to be made in is not ours alone.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// One cannot be made or opened.
    #[error("cannot make the pipe {}: {source}", path.display())]
    Io {
        /// Its name.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// The pipes of a program that is about to be launched.
#[derive(Debug)]
pub struct Pipes {
    names: Names,
    piped: Piped,
    /// Without a reader, the pipe could not be opened for writing. Goes when the program has opened
    /// its own, or writing to a program that has ended would never fail.
    stdin_reader: File,
}

/// The host's ends of a program's standard streams.
///
/// As long as anything that the program started holds the other ends, nothing ends here: `stdout` and
/// `stderr` end when the last writer has gone. Writing to `stdin` fails with `BrokenPipe` when the last
/// reader has; dropping it is the end of file for the program.
#[derive(Debug)]
pub struct Piped {
    /// What the program reads.
    pub stdin: pipe::Sender,
    /// What it writes.
    pub stdout: pipe::Receiver,
    /// What it complains.
    pub stderr: pipe::Receiver,
}

impl Pipes {
    /// Makes them, mode 0600, in `dir`, which must be ours with mode 0700, and opens the host's ends.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn make(dir: &Path) -> Result<Self, PipesError> {
        check_private(dir, "XDG_RUNTIME_DIR")?;
        let names = Names::make(dir)?;
        let fifos = &names.fifos;
        let receiver = |path: &Path| OpenOptions::new().open_receiver(path).map_err(failed(path));
        let stdin_reader = File::from(
            rustix::fs::open(
                &fifos.stdin,
                rustix::fs::OFlags::RDONLY
                    | rustix::fs::OFlags::NONBLOCK
                    | rustix::fs::OFlags::CLOEXEC,
                Mode::empty(),
            )
            .map_err(|errno| failed(&fifos.stdin)(errno.into()))?,
        );
        let piped = Piped {
            stdin: OpenOptions::new()
                .open_sender(&fifos.stdin)
                .map_err(failed(&fifos.stdin))?,
            stdout: receiver(&fifos.stdout)?,
            stderr: receiver(&fifos.stderr)?,
        };
        Ok(Self {
            names,
            piped,
            stdin_reader,
        })
    }

    /// Their names, for the keeper.
    pub fn fifos(&self) -> &Fifos {
        &self.names.fifos
    }

    /// The host's ends, once the program has its own: the names go.
    pub(super) fn into_piped(self) -> Piped {
        let Self {
            names,
            piped,
            stdin_reader,
        } = self;
        drop((names, stdin_reader));
        piped
    }
}

/// Named pipes that lose their names when this is dropped.
#[derive(Debug)]
struct Names {
    fifos: Fifos,
}

impl Names {
    fn make(dir: &Path) -> Result<Self, PipesError> {
        let mut random = [0u8; 6];
        getrandom::fill(&mut random).map_err(|error| failed(dir)(io::Error::other(error)))?;
        // Dotted, as all that a sweep after a crash may remove.
        let path = |stream: &str| dir.join(format!(".{}.{stream}", hex::encode(random)));
        let names = Self {
            fifos: Fifos {
                stdin: path("in"),
                stdout: path("out"),
                stderr: path("err"),
            },
        };
        for path in names.all() {
            mkfifoat(CWD, path, Mode::from_raw_mode(0o600))
                .map_err(|errno| failed(path)(errno.into()))?;
        }
        Ok(names)
    }

    fn all(&self) -> [&Path; 3] {
        let Fifos {
            stdin,
            stdout,
            stderr,
        } = &self.fifos;
        [stdin, stdout, stderr]
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        for path in self.all() {
            // Absent if making it failed.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> PipesError {
    move |source| PipesError::Io {
        path: path.to_owned(),
        source,
    }
}
