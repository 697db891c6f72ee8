//! `handover man [COMMAND…]`.

use clap::CommandFactory;

use super::context::{self, Context, print_json};
use super::failure::Failure;

/// Arguments of `handover man`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The command to explain, such as `desktop click`; the whole program if not given
    command: Vec<String>,
}

/// Runs `handover man`.
pub fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let page = page(&args.command)?;
    if context.json {
        return print_json(&serde_json::json!({ "page": String::from_utf8_lossy(&page) }));
    }
    context::write(&page)
}

/// The page in roff, for `man -l -`.
fn page(path: &[String]) -> Result<Vec<u8>, Failure> {
    let mut command = super::Cli::command();
    // Fills in what subcommands inherit.
    command.build();
    let mut title = command.get_name().to_owned();
    for name in path {
        let Some(found) = command.find_subcommand(name) else {
            return Err(Failure::usage(format!(
                "`{title}` has no such command; see `{title} --help`"
            )));
        };
        command = found.clone();
        title = format!("{title} {name}");
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &[&str]) -> String {
        let path: Vec<String> = path.iter().map(|&name| name.to_owned()).collect();
        String::from_utf8(page(&path).unwrap()).unwrap()
    }

    #[test]
    fn pages_name_their_command() {
        assert!(text(&[]).contains(".TH handover 1"));
        let click = text(&["desktop", "click"]);
        assert!(click.contains(".TH handover-desktop-click 1"), "{click}");
        assert!(click.contains("button"));
        assert!(page(&["nonsense".to_owned()]).is_err());
    }
}
