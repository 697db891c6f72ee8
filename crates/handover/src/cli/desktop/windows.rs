//! `handover desktop windows`.

use handover_protocol::{DesktopId, DesktopWindowsParams, DesktopWindowsResult, Method};

use super::super::context::{Context, block_on};
use super::super::failure::Failure;
use super::super::session::Session;
use super::super::table::Table;
use super::super::text::shortened;

/// Arguments of `handover desktop windows`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The desktop, such as d1; not needed if the session has one
    #[arg(id = "DESKTOP", conflicts_with = "desktop")]
    named: Option<DesktopId>,
    /// The same, as an option
    #[arg(long, value_name = "DESKTOP")]
    desktop: Option<DesktopId>,
}

/// Runs `handover desktop windows`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let params = DesktopWindowsParams {
        desktop: args.named.or(args.desktop),
    };
    block_on(async {
        let session = Session::open(context).await?;
        let result: DesktopWindowsResult = session.call(Method::DesktopWindows, &params).await?;
        context.print(&result, render)
    })
}

fn render(result: &DesktopWindowsResult) -> String {
    if result.windows.is_empty() {
        return "no windows\n".to_owned();
    }
    let mut table = Table::new(["", "ID", "SIZE", "AT", "PID", "TITLE"]);
    for window in &result.windows {
        table.row([
            if window.focused { "*" } else { "" }.to_owned(),
            format!("{:#x}", window.id),
            format!("{}x{}", window.width, window.height),
            format!("{},{}", window.x, window.y),
            window
                .pid
                .map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
            shortened(&window.title, 80),
        ]);
    }
    table.render("")
}

#[cfg(test)]
mod tests {
    use handover_protocol::Window;

    use super::*;

    #[test]
    fn as_a_person_sees_it() {
        let window = |id, title: &str, pid, focused| Window {
            id,
            title: title.to_owned(),
            pid,
            x: 0,
            y: 24,
            width: 640,
            height: 480,
            focused,
        };
        let windows = vec![
            window(0x40_0001, "xterm\u{1b}]0;gone\u{7}", Some(77), true),
            window(0x60_0001, "", None, false),
        ];
        insta::assert_snapshot!(render(&DesktopWindowsResult { windows }), @r"
           ID        SIZE     AT    PID  TITLE
        *  0x400001  640x480  0,24  77   xterm\u{1b}]0;gone\u{7}
           0x600001  640x480  0,24  -
        ");
    }
}
