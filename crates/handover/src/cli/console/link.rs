//! `handover console link`: a one-use link for another browser.

use std::time::Duration;

use handover_host::system::dirs::Roots;
use handover_protocol::DesktopId;

use super::super::context::{Context, block_on};
use super::super::failure::Failure;
use super::super::{discover, duration};
use crate::console::{self, Ask, LINK_TIMES};

/// Arguments of `handover console link`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The desktop that the link opens, and nothing else; without one it opens everything
    desktop: Option<DesktopId>,
    /// How long it can be opened, from a second to a day; what it opened ends then too if it is one desktop,
    /// and else with the console
    #[arg(long = "for", value_name = "DURATION", value_parser = good_for, default_value = "10m")]
    good_for: Duration,
}

fn good_for(text: &str) -> Result<Duration, String> {
    let (shortest, longest) = LINK_TIMES;
    let good_for = duration::parse(text)?;
    if good_for < shortest || good_for > longest {
        return Err("a link can be good for 1s to 1d".to_owned());
    }
    Ok(good_for)
}

/// Runs `handover console link`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let session = match &args.desktop {
        None => None,
        Some(_) => Some(discover::manifest(context)?.session_id),
    };
    let asked = Ask {
        session,
        desktop: args.desktop,
        for_ms: Some(duration::ms(args.good_for)),
    };
    let link = block_on(async { Ok(console::ask(&Roots::from_env(), &asked).await?) })?;
    context.print(&link, |link| {
        let until = link.expires_at;
        match &link.desktop {
            Some(desktop) => format!(
                "{}\nIt opens {desktop} alone, once. It can be opened until {until}; what it opened ends then too.\n",
                link.url
            ),
            None => format!(
                "{}\nIt opens everything, once. It can be opened until {until}; what it opened stays open for as long as the console runs.\n",
                link.url
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(good_for("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(good_for("24h"), Ok(Duration::from_secs(86_400)));
        assert_eq!(good_for("1d"), good_for("24h"));
        for wrong in ["999ms", "25h", "2d", "0", "x"] {
            assert!(good_for(wrong).is_err(), "{wrong}");
        }
    }
}
