//! A process that copies bytes between two sockets and looks at none of them: the least that anything
//! between a viewer and its server can cost.

use std::{
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    thread,
    time::Duration,
};

use crate::{
    Outcome,
    place::{eventually, text},
};

/// The first argument with which this program is such a process.
pub const COPY: &str = "--copy";

/// Bytes copied at once.
const BUFFER: usize = 64 << 10;

/// The process, killed when dropped.
pub struct Copier {
    process: Child,
    /// Where it listens, for one client.
    pub socket: PathBuf,
}

impl Copier {
    /// Starts it before `server`, listening on a socket beside the server's.
    pub fn start(server: &Path) -> Outcome<Self> {
        let socket = server.with_extension("copy");
        let process = Command::new(std::env::current_exe()?)
            .args([COPY, text(&socket)?, text(server)?])
            .stdin(Stdio::null())
            .spawn()?;
        let copier = Self { process, socket };
        eventually(
            "the copying process listens",
            Duration::from_secs(5),
            || copier.socket.exists().then_some(()),
        )?;
        Ok(copier)
    }
}

impl Copier {
    /// Its process id.
    pub fn pid(&self) -> u64 {
        self.process.id().into()
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Is that process: copies for one client until one side ends.
pub fn copy(arguments: &[String]) -> ExitCode {
    let copied = || -> Outcome<()> {
        let [listen, server] = arguments else {
            return Err("a socket to listen on and a server's".into());
        };
        let (client, _) = UnixListener::bind(listen)?.accept()?;
        let server = UnixStream::connect(server)?;
        let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
        thread::spawn(move || one_way(from_client, to_server));
        one_way(server, client)?;
        Ok(())
    };
    match copied() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn one_way(mut from: UnixStream, mut to: UnixStream) -> std::io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            length => to.write_all(&buffer[..length])?,
        }
    }
}
