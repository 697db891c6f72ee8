//! The web console: a server on the loopback interface, and the app that it serves.
//!
//! It is a client of every live host of this user and has no power of its own: what a browser asks goes to
//! the attach socket of the session that it names, and what the host answers goes back as it is. Each
//! browser has its own connection to each host, so that its leases end with it.
//!
//! Pure parts decide: [`auth`] who is let in, [`origin`] which requests are heard, [`scope`] what may be
//! said, [`policy`] what a page may do.

mod assets;
mod auth;
mod door;
mod grant;
mod live;
mod origin;
mod pages;
mod places;
mod policy;
mod record;
mod routes;
mod scope;
mod server;
mod sessions;
mod state;
pub mod tls;
mod upgrade;
mod view;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use handover_host::system::clock;
use handover_host::system::dirs::{DirError, Roots};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub use self::auth::LINK_TIMES;
use self::auth::Secret;
use self::door::Door;
pub use self::door::{Ask, ask};
use self::origin::Names;
pub use self::origin::is_host;
use self::scope::Scope;
use self::state::Console;

/// How long connections may take to end with the console.
const END_WITHIN: Duration = Duration::from_millis(700);

/// Where and how a console is to listen.
pub struct Options {
    /// The address.
    pub address: IpAddr,
    /// The port; the usual one or any that is free if none.
    pub port: Option<u16>,
    /// Further names under which it is reached.
    pub names: Vec<String>,
    /// TLS, where it is spoken.
    pub tls: Option<TlsAcceptor>,
}

/// A console that listens.
pub struct Server {
    console: Arc<Console>,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    address: SocketAddr,
    base: String,
    door: Door,
    directory: PathBuf,
}

/// Why a console cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program was built without the app.
    #[error(
        "this handover was built without the web console: run `make console` in its source, then build it again"
    )]
    NoApp,
    /// The port is taken, or the address is not one of this machine.
    #[error("cannot listen on {address}: {}", why_not(source))]
    Listen {
        /// Where.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// There is no place for its socket.
    #[error(transparent)]
    Place(#[from] DirError),
    /// Its socket cannot be made.
    #[error("cannot listen for the command line: {0}")]
    Door(io::Error),
    /// What should be a name is none.
    #[error("{0:?} is no host; give a name such as desk.example or an address, without a port")]
    Name(String),
    /// The system has no randomness.
    #[error("cannot make a secret: {0}")]
    Randomness(#[from] getrandom::Error),
}

/// Why nothing can listen there, and what to do.
fn why_not(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program does, perhaps another console; choose another port with --port, or name none and get \
             one that is free"
                .to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address; give one of its own to --listen".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "the system does not allow it; choose a port above 1023 with --port".to_owned()
        }
        _ => error.to_string(),
    }
}

impl Server {
    /// Begins to listen. Nothing is answered before [`Self::serve`].
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(options: Options) -> Result<Self, StartError> {
        if !assets::is_there() {
            return Err(StartError::NoApp);
        }
        let Options {
            address,
            port,
            names,
            tls,
        } = options;
        let known = Names::new(address, &names, tls.is_some()).map_err(StartError::Name)?;
        let failed = |source| {
            let address = match port {
                Some(port) => SocketAddr::new(address, port).to_string(),
                None => address.to_string(),
            };
            StartError::Listen { address, source }
        };
        let listener = server::listen(address, port).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let base = server::base(known.scheme(), names.first().map(String::as_str), address);
        let directory = door::directory(&Roots::from_env())?;
        let door = Door::open(&directory, base.clone()).map_err(StartError::Door)?;
        let console = Arc::new(Console::new(known, address.port()));
        Ok(Self {
            console,
            listener,
            tls,
            address,
            base,
            door,
            directory,
        })
    }

    /// A directory that is private to this user and does not outlast the machine's uptime.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The link that lets one browser in, to everything. It is good until it is used.
    ///
    /// # Errors
    /// [`StartError::Randomness`].
    pub fn first_link(&self) -> Result<String, StartError> {
        let secret = Secret::generate()?;
        let added = self
            .console
            .access()
            .add_link(&secret, Scope::All, None, clock::now());
        // It is the first.
        debug_assert!(added.is_ok());
        Ok(format!("{}{}{}", self.base, routes::OPEN, secret.reveal()))
    }

    /// Serves until `end`, and then for as long as connections take to end.
    pub async fn serve(self, end: impl Future<Output = ()>) {
        let Self {
            console,
            listener,
            tls,
            door,
            ..
        } = self;
        let routes = routes::routes(Arc::clone(&console));
        tokio::select! {
            () = server::serve(listener, tls, routes, Arc::clone(&console)) => {}
            () = console.sessions.watch() => {}
            () = door.serve(&console) => {}
            () = end => {}
        }
        console.stop();
        let _ = tokio::time::timeout(END_WITHIN, console.quiet()).await;
    }
}
