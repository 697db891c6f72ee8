//! `handover console`: the web console.

mod browser;
mod link;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use handover_host::callers::{CallerKind, Callers, ConnectionId};
use handover_host::system::clock;
use handover_host::system::creds::Sender;
use handover_host::system::dirs::Roots;
use handover_protocol::ErrorCode;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::config;
use super::context::Context;
use super::failure::Failure;
use crate::console::tls::{self, Tls, TlsError};
use crate::console::{Options, Server, StartError};

/// How long a person has to confirm on the terminal.
const CONFIRM: Duration = Duration::from_secs(60);

/// How long a browser may take to start and to read the page that goes on to the link.
const PAGE_READ_WITHIN: Duration = Duration::from_secs(60);

/// Arguments of `handover console`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The port [default: `console.port` of the configuration, else 7468, or any that is free]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// The address to listen on, such as 192.168.1.5 or [::1]:8000; one that other machines reach is
    /// served by TLS alone
    #[arg(long, value_name = "ADDRESS", value_parser = place, default_value = "127.0.0.1")]
    listen: Place,
    /// A name under which browsers reach this machine, besides `console.hosts` of the configuration; may be
    /// repeated
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// A certificate with its chain, in PEM; without one, a certificate is made where TLS is needed
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Open the console in the browser of this desktop
    #[arg(long)]
    open: bool,
}

/// The commands below `handover console`.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print a link that opens the running console once, for one desktop or for everything
    Link(link::Args),
}

/// An address, with its port if that was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    address: IpAddr,
    port: Option<u16>,
}

fn place(text: &str) -> Result<Place, String> {
    if let Ok(socket) = text.parse::<SocketAddr>() {
        return Ok(Place {
            address: socket.ip(),
            port: Some(socket.port()),
        });
    }
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    let address = match bare {
        "localhost" => Ok(Ipv4Addr::LOCALHOST.into()),
        bare => bare.parse(),
    };
    let address = address.map_err(|_| {
        "an address must look like 192.168.1.5, 192.168.1.5:8000, ::1 or [::1]:8000".to_owned()
    })?;
    Ok(Place {
        address,
        port: None,
    })
}

/// Runs `handover console`, until it is interrupted.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    if let Some(Command::Link(args)) = args.command {
        return link::run(args, context);
    }
    // Pictures of several desktops may pass at a time.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let served = runtime.block_on(serve(args, context));
    // Nobody waits for a file that is read.
    runtime.shutdown_background();
    served
}

async fn serve(args: Args, context: &Context) -> Result<(), Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        asked = person() => asked?,
        _ = interrupt.recv() => return Err(Failure::interrupted()),
    }
    let port = asked_port(&args)?;
    let set = config::or_default().console;
    let names = [args.host.clone(), set.hosts].concat();
    let tls = encryption(&args, &names)?;
    let fingerprint = tls.as_ref().map(|tls| tls.fingerprint.clone());
    let server = Server::start(Options {
        address: args.listen.address,
        port: port.or(set.port),
        names,
        tls: tls.map(|tls| tls.acceptor),
    })
    .await?;
    let url = server.first_link()?;
    let mut said = json!({
        "url": url,
        "address": server.address().to_string(),
        "pid": std::process::id(),
    });
    if let Some(fingerprint) = &fingerprint {
        said["certificateSha256"] = json!(fingerprint);
    }
    context.print(&said, |_| {
        let mut text = format!("The web console is at {url}\n");
        if let Some(fingerprint) = &fingerprint {
            let own = args.tls_cert.is_some();
            let whose = if own {
                "yours"
            } else {
                "made here, so browsers will warn of it"
            };
            text.push_str(&format!(
                "It speaks TLS; the certificate is {whose}:\n  SHA-256 {fingerprint}\n"
            ));
        }
        text.push_str("The link can be opened once. Ctrl-C ends the console.\n");
        text
    })?;
    let page = match args.open.then(|| browser::open(&url, server.directory())) {
        Some(Ok(page)) => Some(page),
        Some(Err(error)) => {
            eprintln!("handover: cannot open a browser: {error}; open the link by hand");
            None
        }
        None => None,
    };
    let mut interrupted = false;
    server
        .serve(async {
            tokio::select! {
                _ = interrupt.recv() => interrupted = true,
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
                () = keep(page) => {}
            }
        })
        .await;
    if interrupted {
        Err(Failure::interrupted())
    } else {
        Ok(())
    }
}

/// The port that the options name, if they do.
///
/// # Errors
/// If two of them name different ones.
fn asked_port(args: &Args) -> Result<Option<u16>, Failure> {
    match (args.port, args.listen.port) {
        (Some(port), Some(other)) if port != other => Err(Failure::usage(format!(
            "--port {port} and --listen {} name different ports; give one of them",
            SocketAddr::new(args.listen.address, other)
        ))),
        (port, other) => Ok(port.or(other)),
    }
}

/// Keeps the page for as long as a browser needs to read it, which is not long. Does not end.
async fn keep(page: Option<browser::Page>) {
    tokio::time::sleep(PAGE_READ_WITHIN).await;
    drop(page);
    std::future::pending().await
}

/// Whether a person starts this console, as a host would see it. A host asks again when something is
/// done that only a person may do; but nobody is to find out only then.
///
/// # Errors
/// `caller_refused`.
async fn person() -> Result<(), Failure> {
    let callers = Callers::new();
    let own = Sender {
        pid: std::process::id(),
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
    };
    let caller = callers.identify(own, ConnectionId(0), clock::now())?;
    if !matches!(caller.kind, CallerKind::Human { .. }) {
        let message = "only a person may start the web console; use `request_human` to ask for one";
        return Err(Failure::new(ErrorCode::CallerRefused, message));
    }
    Ok(callers
        .confirm(&caller, "serve the web console in your name", CONFIRM)
        .await?)
}

/// The TLS to speak: where other machines can reach the console, or a certificate is given. One that is made
/// here is for the console's `names`.
fn encryption(args: &Args, names: &[String]) -> Result<Option<Tls>, Failure> {
    let failed = |error: TlsError| {
        let code = match error {
            TlsError::Read { .. } | TlsError::Empty(_) | TlsError::Unfit(_) => ErrorCode::BadParams,
            TlsError::Place(_) | TlsError::Store { .. } => ErrorCode::StorageFailed,
            TlsError::Make(_) => ErrorCode::Internal,
        };
        Failure::new(code, error.to_string())
    };
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        return tls::own(certificate, key).map(Some).map_err(failed);
    }
    let address = args.listen.address;
    if address.is_loopback() {
        return Ok(None);
    }
    let sessions = Roots::from_env()
        .state()
        .map_err(TlsError::Place)
        .map_err(failed)?;
    let names = tls::names(address, names);
    let made = tls::made(&sessions.with_file_name("console"), &names);
    made.map(Some).map_err(failed)
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Name(_) => Self::usage(error.to_string()),
            StartError::Listen { .. } => Self::new(ErrorCode::BadParams, error.to_string()),
            error => Self::new(ErrorCode::Internal, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn one_port() {
        let port = |options: &[&str]| {
            let line = Line::try_parse_from([&["console"], options].concat()).unwrap();
            asked_port(&line.args).map_err(|failure| failure.message().to_owned())
        };
        assert_eq!(port(&[]), Ok(None));
        assert_eq!(port(&["--port", "80"]), Ok(Some(80)));
        assert_eq!(port(&["--listen", "::1"]), Ok(None));
        assert_eq!(port(&["--listen", "[::1]:80"]), Ok(Some(80)));
        assert_eq!(
            port(&["--listen", "[::1]:80", "--port", "80"]),
            Ok(Some(80))
        );
        let refused = port(&["--listen", "[::1]:80", "--port", "81"]).unwrap_err();
        assert!(refused.contains("--port 81") && refused.contains("--listen [::1]:80"));
    }

    #[test]
    fn places() {
        let at = |address: &str, port| {
            Ok(Place {
                address: address.parse().unwrap(),
                port,
            })
        };
        assert_eq!(place("127.0.0.1"), at("127.0.0.1", None));
        assert_eq!(place("localhost"), at("127.0.0.1", None));
        assert_eq!(place("0.0.0.0:80"), at("0.0.0.0", Some(80)));
        assert_eq!(place("::1"), at("::1", None));
        assert_eq!(place("[::1]"), at("::1", None));
        assert_eq!(place("[::1]:8000"), at("::1", Some(8000)));
        for wrong in ["", "desk.example", "1.2.3", "1.2.3.4:x", "[::1", "::1]:8"] {
            assert!(place(wrong).is_err(), "{wrong}");
        }
    }
}
