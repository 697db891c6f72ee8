//! A cable that can be pulled: what lies between a browser and the console.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A way to the console over a port of its own. Pulled when dropped.
pub struct Cable {
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    pulled: bool,
    /// How often it was cut silently: what was connected before is heard of no more.
    cuts: usize,
    connections: Vec<TcpStream>,
}

impl Cable {
    /// Lays one to the server at `to`.
    pub fn lay(to: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::<Mutex<State>>::default();
        let (shared, to) = (Arc::clone(&state), to.to_owned());
        // Ends with the test.
        thread::spawn(move || {
            for browser in listener.incoming().flatten() {
                let _ = carry(browser, &to, &shared);
            }
        });
        Self { port, state }
    }

    /// The same link over this cable.
    pub fn over(&self, url: &str) -> String {
        let (_, path) = url
            .strip_prefix("http://")
            .and_then(|rest| rest.split_once('/'))
            .expect("a link");
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// Pulls it: all connections break, and there are no new ones.
    pub fn pull(&self) {
        let mut state = self.state.lock().expect("no panic while it is held");
        state.pulled = true;
        for connection in state.connections.drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// What is connected goes quiet, and nobody is told; new connections are made as before.
    pub fn go_quiet(&self) {
        self.state.lock().expect("no panic while it is held").cuts += 1;
    }

    /// Plugs it in again.
    pub fn plug(&self) {
        self.state.lock().expect("no panic while it is held").pulled = false;
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.pull();
    }
}

/// Carries bytes both ways until either side ends or the cable is pulled.
fn carry(browser: TcpStream, to: &str, state: &Arc<Mutex<State>>) -> io::Result<()> {
    let console = TcpStream::connect(to)?;
    let cuts = {
        let mut state = state.lock().expect("no panic while it is held");
        if state.pulled {
            return browser.shutdown(Shutdown::Both);
        }
        state.connections.push(browser.try_clone()?);
        state.connections.push(console.try_clone()?);
        state.cuts
    };
    let ways = [
        (browser.try_clone()?, console.try_clone()?),
        (console, browser),
    ];
    for (from, into) in ways {
        let state = Arc::clone(state);
        thread::spawn(move || {
            let is_quiet = || state.lock().is_ok_and(|state| state.cuts != cuts);
            let _ = copy(from, &into, is_quiet);
        });
    }
    Ok(())
}

/// Copies until the end of `from`, which `into` is told, unless the cable is quiet: then nothing is.
fn copy(mut from: TcpStream, mut into: &TcpStream, is_quiet: impl Fn() -> bool) -> io::Result<()> {
    let mut bytes = [0; 16 << 10];
    loop {
        let read = from.read(&mut bytes).unwrap_or(0);
        if is_quiet() {
            // Both ends stay open until the cable is pulled.
            thread::park();
        }
        if read == 0 {
            return into.shutdown(Shutdown::Write);
        }
        into.write_all(&bytes[..read])?;
    }
}
