//! `handover watch`: watches a desktop, and with `--control` takes control of it.

mod asked;
mod control;
mod ended;
mod heartbeat;
mod keyboard;
mod screen;
mod signals;
mod viewer;

use std::io::{self, IsTerminal};
use std::time::Duration;

use handover_protocol::{
    ControlStatusParams, ControlStatusResult, DesktopId, ErrorCode, Method, ViewOpenParams,
    ViewOpenResult,
};
use serde_json::json;

use self::asked::Asked;
use self::signals::Signals;
use self::viewer::Choice;
use super::config;
use super::context::{Context, block_on, print_text};
use super::discover;
use super::duration;
use super::failure::Failure;
use super::session::Session;
use crate::config::Control;
use crate::notify::terminal::Attention;

/// Arguments of `handover watch`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The desktop, such as d1; not needed if the session has one
    desktop: Option<DesktopId>,
    /// Take control until the viewer is closed or this is interrupted
    #[arg(long)]
    control: bool,
    /// If another person is in control, ask them for it and wait for their answer
    #[arg(long, requires = "control")]
    ask: bool,
    /// What the agents should know
    #[arg(long, value_name = "TEXT", requires = "control")]
    note: Option<String>,
    /// The viewer to open: auto, none or a program, which is given the socket's path
    #[arg(long, value_name = "PROGRAM", default_value = "auto")]
    viewer: Choice,
    /// How long to wait for a viewer where none can be opened
    #[arg(
        long, value_name = "DURATION", default_value = "2m", value_parser = duration::parse,
        requires = "control"
    )]
    wait: Duration,
    /// The longest time without input [default: `control.idle` of the configuration]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "control")]
    idle: Option<Duration>,
    /// The longest time in control [default: `control.max` of the configuration]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "control")]
    max: Option<Duration>,
    /// How long control lasts if this program stops answering [default: `control.ttl` of the configuration, else 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "control")]
    ttl: Option<Duration>,
    /// How long the agents' acts that are under way may take to end, up to 60s [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "control")]
    drain: Option<Duration>,
    /// Refuse screenshots to everybody meanwhile
    #[arg(long, requires = "control")]
    private: bool,
}

impl Args {
    /// The same with what the configuration says where the command line says nothing.
    fn with_defaults(self, control: &Control) -> Self {
        Self {
            ttl: self.ttl.or(control.ttl),
            idle: self.idle.or(control.idle),
            max: self.max.or(control.max),
            ..self
        }
    }
}

/// Runs `handover watch`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    block_on(async {
        // Before anything changes hands.
        args.viewer.check()?;
        let config = config::or_default();
        let socket = discover::socket(context)?;
        let session = Session::at(&socket, context).await?;
        // Which one it is if none was named.
        let params = ControlStatusParams {
            desktop: args.desktop.clone(),
        };
        let status: ControlStatusResult = session.call(Method::ControlStatus, &params).await?;
        let desktop = status.desktop;
        let params = ViewOpenParams {
            desktop: Some(desktop.clone()),
        };
        let view: ViewOpenResult = session.call(Method::ViewOpen, &params).await?;
        if args.control {
            let args = args.with_defaults(&config.control);
            let attention = Attention::new(config.notify.bell);
            return control::run(args, session, socket, desktop, view, attention, context).await;
        }
        let attention = Attention::new(config.notify.bell && !context.json);
        observe(&args, session, &desktop, &view, attention, context).await
    })
}

/// Opens a viewer, or says how to connect one; closing it changes nothing. Meanwhile the person is called to the
/// terminal when an agent asks for one. Without a viewer and a terminal to call to there is nothing to stay for.
async fn observe(
    args: &Args,
    mut session: Session,
    desktop: &DesktopId,
    view: &ViewOpenResult,
    mut attention: Attention,
    context: &Context,
) -> Result<(), Failure> {
    // From here on the terminal's title may be ours: a signal must not just end the program.
    let mut signals = Signals::catch()?;
    asked::listen(&session).await;
    let json = json!({
        "desktop": desktop, "viewer": view.viewer, "socketPath": view.socket_path,
    });
    context.print(&json, |_| {
        format!("watching {desktop} as {}\n", view.viewer)
    })?;
    let mut viewer = viewer::open(&args.viewer, &view.socket_path, false)?;
    if viewer.is_none() {
        if !context.json {
            print_text(&viewer::ways(&view.socket_path))?;
        }
        if context.json || !io::stderr().is_terminal() {
            return Ok(());
        }
        eprintln!("requests for a person are told here until you press Ctrl-C");
    }
    loop {
        tokio::select! {
            ended = viewer::closed(&mut viewer) => {
                ended?;
                return Ok(());
            }
            signal = signals.next() => match signal {
                signals::Asked::Stop => return Err(Failure::interrupted()),
                signals::Asked::Suspend => {
                    attention.rest();
                    signals::suspend()?;
                }
            },
            news = session.notifications.recv() => match news {
                Some(news) => {
                    if let Some(asked) = Asked::heard(&news).filter(|_| !context.json) {
                        eprintln!("{}", asked.text());
                        attention.call(&asked.text());
                    }
                }
                None => return Err(host_gone("the host is gone, and its desktops cannot be watched")),
            }
        }
    }
}

fn host_gone(message: &str) -> Failure {
    Failure::new(ErrorCode::SessionUnknown, message)
}
