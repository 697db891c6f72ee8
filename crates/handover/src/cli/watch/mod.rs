//! `handover watch`: watches a desktop, and with `--control` takes control of it.

mod control;
mod ended;
mod heartbeat;
mod keyboard;
mod screen;
mod signals;
mod viewer;

use std::time::Duration;

use handover_protocol::{
    ControlStatusParams, ControlStatusResult, DesktopId, Method, ViewOpenParams, ViewOpenResult,
};
use serde_json::json;

use self::viewer::Choice;
use super::context::{Context, block_on, print_text};
use super::discover;
use super::duration;
use super::failure::Failure;
use super::session::Session;

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
    /// The longest time in control
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "control")]
    max: Option<Duration>,
    /// How long control lasts if this program stops answering [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "control")]
    ttl: Option<Duration>,
    /// Refuse screenshots to everybody meanwhile
    #[arg(long, requires = "control")]
    private: bool,
}

/// Runs `handover watch`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    block_on(async {
        // Before anything changes hands.
        args.viewer.check()?;
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
            return control::run(args, session, socket, desktop, view, context).await;
        }
        observe(&args, &desktop, &view, context).await
    })
}

/// Opens a viewer, or says how to connect one; closing it changes nothing.
async fn observe(
    args: &Args,
    desktop: &DesktopId,
    view: &ViewOpenResult,
    context: &Context,
) -> Result<(), Failure> {
    let json = json!({
        "desktop": desktop, "viewer": view.viewer, "socketPath": view.socket_path,
    });
    context.print(&json, |_| {
        format!("watching {desktop} as {}\n", view.viewer)
    })?;
    let Some(mut viewer) = viewer::open(&args.viewer, &view.socket_path, false)? else {
        if !context.json {
            print_text(&viewer::ways(&view.socket_path))?;
        }
        return Ok(());
    };
    tokio::select! {
        ended = viewer.wait() => {
            ended?;
            Ok(())
        }
        _ = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
    }
}
