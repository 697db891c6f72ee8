//! Usage errors, and help, which the parser reports as an error too.
//!
//! The parser quotes the word that it did not understand. Where that word can be typed text or a
//! message, only the kind of the error is told.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::failure::{Failure, USAGE};

/// Reports what the parser said, in the way that the arguments ask for.
pub fn report(error: &clap::Error, args: &[OsString]) -> ExitCode {
    if !error.use_stderr() {
        // Help or version: a result. Nothing is left to do if it cannot be written.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if wants_json(args) {
        let failure = Failure::usage(message(error, args));
        return if speaks_a_protocol(args) {
            failure.report_aside(true)
        } else {
            failure.report(true)
        };
    }
    if takes_text(args) {
        let text = format!("error: {}\n", message(error, args));
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    } else {
        let _ = error.print();
    }
    ExitCode::from(USAGE)
}

fn message(error: &clap::Error, args: &[OsString]) -> String {
    if takes_text(args) {
        let command = commands(args).collect::<Vec<_>>().join(" ");
        let problem = match error.kind() {
            ErrorKind::MissingRequiredArgument => "an argument is missing",
            ErrorKind::UnknownArgument => {
                "there is an argument too many or an unknown option; quote the text, or write -- before it"
            }
            ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
                "an option's value is not valid"
            }
            _ => "the arguments are not valid",
        };
        return format!("{problem}; see `handover {command} --help`");
    }
    let text = error.render().to_string();
    // Its first paragraph; the usage follows.
    let first = text.split("\n\n").next().unwrap_or_default();
    first
        .trim_start_matches("error:")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// How the command of these arguments is told which desktop it is about.
pub fn way_to_desktop(args: &[OsString]) -> Option<String> {
    let mut command = &super::Cli::command();
    let all = command.clone().try_get_matches_from(args).ok()?;
    let (mut matches, mut words) = (&all, command.get_name().to_owned());
    while let Some((name, below)) = matches.subcommand() {
        command = command.find_subcommand(name)?;
        words.push_str(&format!(" {name}"));
        matches = below;
    }
    let mut arguments = command.get_arguments();
    let desktop = arguments.find(|argument| argument.get_id() == "desktop")?;
    Some(if desktop.is_positional() {
        format!("name one, as in `{words} D`")
    } else {
        "name one with `--desktop D`".to_owned()
    })
}

/// The words before any text: `desktop type`, `agent run`, `steer`.
fn commands(args: &[OsString]) -> impl Iterator<Item = &str> {
    let words = args.iter().skip(1).filter_map(|word| word.to_str());
    let mut words = words.filter(|word| !word.starts_with('-')).peekable();
    let first = words.next();
    let second = words.next().filter(|word| match first {
        Some("desktop") => TYPED.contains(word),
        Some("agent") => *word == "run",
        _ => false,
    });
    first.into_iter().chain(second)
}

/// Commands of `desktop` that take text.
const TYPED: [&str; 2] = ["type", "key"];

fn takes_text(args: &[OsString]) -> bool {
    // A word anywhere: an option's value may stand before the command.
    let has = |name: &str| args.iter().skip(1).any(|word| word == OsStr::new(name));
    has("answer")
        || has("steer")
        || (has("agent") && has("run"))
        || (has("desktop") && TYPED.iter().any(|word| has(word)))
}

/// Whether standard output would belong to a protocol: see `Command::speaks_a_protocol`.
fn speaks_a_protocol(args: &[OsString]) -> bool {
    let cli = super::Cli::command();
    let words = args.iter().skip(1).filter_map(|word| word.to_str());
    let mut words = words.skip_while(|word| cli.find_subcommand(word).is_none());
    match words.next() {
        Some("relay" | "mcp") => true,
        Some("browser") => words.any(|word| word == "mcp"),
        _ => false,
    }
}

fn wants_json(args: &[OsString]) -> bool {
    args.iter()
        .skip(1)
        .take_while(|word| *word != OsStr::new("--"))
        .any(|word| word == "--json")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::Cli;
    use super::*;

    fn told(line: &str) -> String {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        message(&Cli::try_parse_from(&args).unwrap_err(), &args)
    }

    #[test]
    fn messages() {
        insta::assert_snapshot!(told("handover desktop click 1"), @"the following required arguments were not provided: <Y>");
        insta::assert_snapshot!(told("handover desktop click 1 hello"), @"invalid value 'hello' for '<Y>': invalid digit found in string");
    }

    #[test]
    fn each_command_is_told_its_desktop_in_its_own_way() {
        let way = |line: &str| {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            way_to_desktop(&args)
        };
        for line in [
            "handover desktop launch -- xterm",
            "handover desktop screenshot",
            "handover browser cdp",
            "handover --json browser mcp",
            "handover relay -- server",
        ] {
            assert_eq!(way(line).as_deref(), Some("name one with `--desktop D`"));
        }
        for (line, words) in [
            ("handover takeover status", "handover takeover status D"),
            ("handover --json watch --control", "handover watch D"),
            ("handover pause", "handover pause D"),
        ] {
            assert_eq!(way(line), Some(format!("name one, as in `{words}`")));
        }
        assert_eq!(way("handover list"), None);
    }

    #[test]
    fn typed_text_is_never_repeated() {
        for line in [
            "handover desktop type my hunter2",
            "handover desktop type --hunter2",
            "handover desktop type a --method hunter2",
            "handover --session s desktop --json type my hunter2",
            "handover steer a1 my hunter2",
            "handover answer r1 my hunter2",
            "handover agent run --hunter2",
            "handover agent run --driver pi --env hunter2 -- x",
        ] {
            assert!(!told(line).contains("hunter2"), "{line}: {}", told(line));
        }
        insta::assert_snapshot!(told("handover desktop type my hunter2"), @"there is an argument too many or an unknown option; quote the text, or write -- before it; see `handover desktop type --help`");
    }
}
