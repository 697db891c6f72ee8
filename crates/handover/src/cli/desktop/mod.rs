//! `handover desktop …`: acting on a desktop from the command line.

mod destroy;
mod drag;
mod key;
mod launch;
mod new;
mod point;
mod screenshot;
mod scroll;
mod r#type;
mod windows;

use std::time::Duration;

use clap::Subcommand;
use handover_protocol::{ActionResult, DesktopId, Method};
use serde::Serialize;

use super::context::{Context, block_on};
use super::failure::Failure;
use super::session::Session;
use super::takeover;

/// What to do with a desktop.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a desktop
    New(new::Args),
    /// End a desktop and every program on it
    Destroy(destroy::Args),
    /// Start a program on a desktop
    Launch(launch::Args),
    /// Take a picture of a desktop
    Screenshot(screenshot::Args),
    /// Click at a point
    Click(point::ClickArgs),
    /// Move the pointer to a point
    Move(point::MoveArgs),
    /// Turn the wheel
    Scroll(scroll::Args),
    /// Press at one point, release at another
    Drag(drag::Args),
    /// Click twice at a point
    DoubleClick(point::ClickArgs),
    /// Type text
    Type(r#type::Args),
    /// Press a key or a chord
    Key(key::Args),
    /// List the windows of a desktop
    Windows(windows::Args),
}

/// The option that names a desktop.
#[derive(Clone, Debug, clap::Args)]
pub struct Which {
    /// The desktop, such as d1; not needed if the session has one
    #[arg(long, value_name = "DESKTOP")]
    desktop: Option<DesktopId>,
}

/// Runs `handover desktop`.
pub fn run(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::New(args) => new::run(args, context),
        Command::Destroy(args) => destroy::run(args, context),
        Command::Launch(args) => launch::run(args, context),
        Command::Screenshot(args) => screenshot::run(args, context),
        Command::Click(args) => point::click(args, Method::DesktopClick, context),
        Command::Move(args) => point::move_to(args, context),
        Command::Scroll(args) => scroll::run(args, context),
        Command::Drag(args) => drag::run(args, context),
        Command::DoubleClick(args) => point::click(args, Method::DesktopDoubleClick, context),
        Command::Type(args) => r#type::run(args, context),
        Command::Key(args) => key::run(args, context),
        Command::Windows(args) => windows::run(args, context),
    }
}

/// Calls an action and prints what came of it.
fn act(method: Method, params: &impl Serialize, context: &Context) -> Result<(), Failure> {
    act_within(context.timeout, method, params, context)
}

/// The same for an action that takes longer than others. An action that is given up here may
/// still happen: the message says that no answer came, not that nothing was done.
fn act_within(
    limit: Duration,
    method: Method,
    params: &impl Serialize,
    context: &Context,
) -> Result<(), Failure> {
    block_on(async {
        let session = Session::open(context).await?;
        let result: ActionResult = session.client.call(method, params, Some(limit)).await?;
        context.print(&result, render)
    })
}

fn render(result: &ActionResult) -> String {
    match &result.hand_back {
        None => format!("done (epoch {})\n", result.epoch),
        Some(hand_back) => format!(
            "done (epoch {}); a person was in control before:\n{}",
            result.epoch,
            takeover::render_hand_back(hand_back, "  ")
        ),
    }
}
