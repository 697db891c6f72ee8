//! `handover desktop click`, `double-click` and `move`.

use handover_protocol::{Button, DesktopClickParams, DesktopMoveParams, Method};

use super::super::context::Context;
use super::super::failure::Failure;
use super::{Which, act};

/// A point on a desktop.
#[derive(Debug, clap::Args)]
pub struct Point {
    /// Pixels from the left
    #[arg(allow_negative_numbers = true)]
    x: i64,
    /// Pixels from the top
    #[arg(allow_negative_numbers = true)]
    y: i64,
}

/// The option that names a mouse button.
#[derive(Debug, clap::Args)]
pub struct WithButton {
    /// The button: 1 left, 2 middle, 3 right [default: 1]
    #[arg(long, value_name = "NUMBER", value_parser = parse_button)]
    pub button: Option<Button>,
}

fn parse_button(text: &str) -> Result<Button, String> {
    let number = match text {
        "left" => 1,
        "middle" => 2,
        "right" => 3,
        // Zero is no button either.
        number => number.parse().unwrap_or(0),
    };
    Button::try_from(number).map_err(|error| error.to_string())
}

/// Arguments of `handover desktop click` and `double-click`.
#[derive(Debug, clap::Args)]
pub struct ClickArgs {
    #[command(flatten)]
    point: Point,
    #[command(flatten)]
    with: WithButton,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `handover desktop move`.
#[derive(Debug, clap::Args)]
pub struct MoveArgs {
    #[command(flatten)]
    point: Point,
    #[command(flatten)]
    which: Which,
}

/// Runs `handover desktop click` or `double-click`, as `method` says.
pub fn click(args: ClickArgs, method: Method, context: &Context) -> Result<(), Failure> {
    let params = DesktopClickParams {
        desktop: args.which.desktop,
        x: args.point.x,
        y: args.point.y,
        button: args.with.button,
    };
    act(method, &params, context)
}

/// Runs `handover desktop move`.
pub fn move_to(args: MoveArgs, context: &Context) -> Result<(), Failure> {
    let params = DesktopMoveParams {
        desktop: args.which.desktop,
        x: args.point.x,
        y: args.point.y,
    };
    act(Method::DesktopMove, &params, context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buttons() {
        assert_eq!(parse_button("right").map(Button::number), Ok(3));
        assert_eq!(parse_button("2").map(Button::number), Ok(2));
        for text in ["0", "4", "-1", "x", ""] {
            assert!(parse_button(text).is_err(), "{text}");
        }
    }
}
