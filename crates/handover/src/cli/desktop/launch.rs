//! `handover desktop launch`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use handover_protocol::{DesktopLaunchParams, DesktopLaunchResult, ErrorCode, Method};

use super::super::context::{Context, block_on};
use super::super::failure::Failure;
use super::super::session::Session;
use super::super::takeover;
use super::super::text::plain;
use super::Which;

/// Arguments of `handover desktop launch`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The program and its arguments; write -- before them if they have options
    #[arg(required = true)]
    command: Vec<String>,
    /// Where it runs [default: this directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// A further environment variable; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Keep it from other programs' windows and keys
    #[arg(long)]
    untrusted: bool,
    #[command(flatten)]
    which: Which,
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("a variable must look like NAME=VALUE".to_owned()),
    }
}

/// Runs `handover desktop launch`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let here = std::env::current_dir();
    let cwd = match args.cwd {
        // The host runs elsewhere, so what is relative to us must become absolute.
        Some(cwd) => Some(here?.join(cwd)),
        None => here.ok(),
    };
    let cwd = match cwd
        .map(PathBuf::into_os_string)
        .map(|cwd| cwd.into_string())
    {
        None => None,
        Some(Ok(cwd)) => Some(cwd),
        Some(Err(_)) => {
            let message = "the directory's name is not UTF-8; choose another with --cwd";
            return Err(Failure::new(ErrorCode::BadParams, message));
        }
    };
    let env: BTreeMap<_, _> = args.env.into_iter().collect();
    let params = DesktopLaunchParams {
        desktop: args.which.desktop,
        command: args.command,
        cwd,
        env: (!env.is_empty()).then_some(env),
        untrusted: args.untrusted.then_some(true),
    };
    block_on(async {
        let session = Session::open(context).await?;
        let result: DesktopLaunchResult = session.call(Method::DesktopLaunch, &params).await?;
        context.print(&result, render)
    })
}

fn render(result: &DesktopLaunchResult) -> String {
    let mut text = format!("process {}, output in {}\n", result.pid, plain(&result.log));
    if let Some(hand_back) = &result.hand_back {
        text.push_str("a person was in control before:\n");
        text.push_str(&takeover::render_hand_back(hand_back, "  "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables() {
        assert_eq!(variable("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert_eq!(variable("A="), Ok(("A".to_owned(), String::new())));
        assert!(variable("A").is_err());
        assert!(variable("=b").is_err());
    }
}
