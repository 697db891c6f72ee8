//! Pipes of a program below a keeper, in the hands of the host: its standard streams, or what it is driven by.
//!
//! Named pipes, since the keeper that opens the program's ends is another process. The host opens its
//! own ends first, so that the keeper never has to wait for them; their names are gone when the program
//! runs.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use thiserror::Error;
use tokio::net::unix::pipe::{self, OpenOptions};

use super::wire::{ChannelFifos, Fifos};
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
    fifos: Fifos,
    names: Names<3>,
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
        let names = Names::make(dir, ["in", "out", "err"])?;
        let [stdin, stdout, stderr] = &names.0;
        let stdin_reader = hold_open(stdin)?;
        let piped = Piped {
            stdin: sender(stdin)?,
            stdout: receiver(stdout)?,
            stderr: receiver(stderr)?,
        };
        Ok(Self {
            fifos: Fifos {
                stdin: stdin.clone(),
                stdout: stdout.clone(),
                stderr: stderr.clone(),
            },
            names,
            piped,
            stdin_reader,
        })
    }

    /// Their names, for the keeper.
    pub fn fifos(&self) -> &Fifos {
        &self.fifos
    }

    /// The host's ends, once the program has its own: the names go.
    pub(super) fn into_piped(self) -> Piped {
        let Self {
            names,
            piped,
            stdin_reader,
            ..
        } = self;
        drop((names, stdin_reader));
        piped
    }
}

/// The two pipes by which a program that is about to be launched is driven, beside its standard streams.
#[derive(Debug)]
pub struct ChannelPipes {
    fifos: ChannelFifos,
    names: Names<2>,
    channel: Channel,
    commands_reader: File,
}

/// The host's ends of them. Dropping `commands` tells the program that its host has gone.
#[derive(Debug)]
pub struct Channel {
    /// What the program reads.
    pub commands: pipe::Sender,
    /// What it writes.
    pub answers: pipe::Receiver,
}

impl ChannelPipes {
    /// Makes them as [`Pipes::make`] does.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn make(dir: &Path) -> Result<Self, PipesError> {
        let names = Names::make(dir, ["commands", "answers"])?;
        let [commands, answers] = &names.0;
        let commands_reader = hold_open(commands)?;
        let channel = Channel {
            commands: sender(commands)?,
            answers: receiver(answers)?,
        };
        Ok(Self {
            fifos: ChannelFifos {
                commands: commands.clone(),
                answers: answers.clone(),
            },
            names,
            channel,
            commands_reader,
        })
    }

    /// Their names, for the keeper.
    pub fn fifos(&self) -> &ChannelFifos {
        &self.fifos
    }

    /// The host's ends, once the program has its own: the names go.
    pub(super) fn into_channel(self) -> Channel {
        let Self {
            names,
            channel,
            commands_reader,
            ..
        } = self;
        drop((names, commands_reader));
        channel
    }
}

fn sender(path: &Path) -> Result<pipe::Sender, PipesError> {
    OpenOptions::new().open_sender(path).map_err(failed(path))
}

fn receiver(path: &Path) -> Result<pipe::Receiver, PipesError> {
    OpenOptions::new().open_receiver(path).map_err(failed(path))
}

/// A reader that never reads, so that the pipe can be opened for writing.
fn hold_open(path: &Path) -> Result<File, PipesError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .map(File::from)
        .map_err(|errno| failed(path)(errno.into()))
}

/// Named pipes that lose their names when this is dropped.
#[derive(Debug)]
struct Names<const N: usize>([PathBuf; N]);

impl<const N: usize> Names<N> {
    fn make(dir: &Path, endings: [&str; N]) -> Result<Self, PipesError> {
        check_private(dir, "XDG_RUNTIME_DIR")?;
        let mut random = [0u8; 6];
        getrandom::fill(&mut random).map_err(|error| failed(dir)(io::Error::other(error)))?;
        // Dotted, as all that a sweep after a crash may remove.
        let path = |ending: &str| dir.join(format!(".{}.{ending}", hex::encode(random)));
        let names = Self(endings.map(path));
        for path in &names.0 {
            mkfifoat(CWD, path, Mode::from_raw_mode(0o600))
                .map_err(|errno| failed(path)(errno.into()))?;
        }
        Ok(names)
    }
}

impl<const N: usize> Drop for Names<N> {
    fn drop(&mut self) {
        for path in &self.0 {
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
