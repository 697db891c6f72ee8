//! The program's other names, and `handover install-links DIR`, which makes them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use handover_protocol::ErrorCode;
use serde::Serialize;

use super::context::Context;
use super::failure::Failure;
use super::text::plain;

/// Each other name, and the command that it means.
const NAMES: [(&str, &str); 5] = [
    ("swarm-list", "list"),
    ("swarm-steer", "steer"),
    ("swarm-abort", "abort"),
    ("swarm-result", "result"),
    ("swarm-attach", "follow"),
];

/// The command that the program means under this name or path, if it is one of its other names.
pub fn command(program: &OsStr) -> Option<&'static str> {
    let name = Path::new(program).file_name()?;
    let meant = NAMES.iter().find(|(link, _)| name == *link);
    meant.map(|(_, command)| *command)
}

/// The arguments as they would be without the other name.
pub fn meant(mut args: Vec<OsString>) -> Vec<OsString> {
    if let Some(command) = args.first().and_then(|program| command(program)) {
        args.splice(..1, ["handover".into(), command.into()]);
    }
    args
}

/// Arguments of `handover install-links`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory, such as ~/.local/bin; made if it is not there
    dir: PathBuf,
    /// Replace files of these names, whatever they are
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Serialize)]
struct Installed {
    dir: PathBuf,
    target: PathBuf,
    links: Vec<Link>,
}

#[derive(Debug, Serialize)]
struct Link {
    name: &'static str,
    command: &'static str,
    path: PathBuf,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// It was not there.
    Made,
    /// It was there and right.
    Kept,
    /// Something else was there.
    Replaced,
}

/// Runs `handover install-links`.
pub fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let target = std::env::current_exe()?;
    fs::create_dir_all(&args.dir).map_err(|error| unusable(&args.dir, &error))?;
    let dir = args
        .dir
        .canonicalize()
        .map_err(|error| unusable(&args.dir, &error))?;
    let installed = install(dir, target, args.force)?;
    context.print(&installed, render)
}

/// Makes all links, or none if a file is in the way.
fn install(dir: PathBuf, target: PathBuf, force: bool) -> Result<Installed, Failure> {
    let mut links = Vec::new();
    let mut in_the_way = Vec::new();
    for (name, command) in NAMES {
        let path = dir.join(name);
        let state = match there(&path, &target).map_err(|error| unusable(&path, &error))? {
            There::Nothing => State::Made,
            There::Right => State::Kept,
            There::Ours => State::Replaced,
            There::Foreign if force => State::Replaced,
            There::Foreign | There::Directory => {
                in_the_way.push(plain(&path.to_string_lossy()));
                continue;
            }
        };
        links.push(Link {
            name,
            command,
            path,
            state,
        });
    }
    if !in_the_way.is_empty() {
        let way_out = if force {
            "remove it, or choose another directory"
        } else {
            "choose another directory, or replace it with --force"
        };
        let message = format!(
            "nothing was made, since something else is there: {}; {way_out}",
            in_the_way.join(", ")
        );
        return Err(Failure::new(ErrorCode::BadParams, message).with("paths", in_the_way));
    }
    for link in links.iter().filter(|link| link.state != State::Kept) {
        make(link, &target).map_err(|error| unusable(&link.path, &error))?;
    }
    Ok(Installed { dir, target, links })
}

/// What stands in the place of a link.
enum There {
    Nothing,
    /// The link itself.
    Right,
    /// A link to this program in another place, as an earlier version left it.
    Ours,
    /// A file, or a link to something else.
    Foreign,
    Directory,
}

fn there(path: &Path, target: &Path) -> io::Result<There> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(There::Nothing),
        Err(error) => return Err(error),
    };
    if metadata.is_dir() {
        return Ok(There::Directory);
    }
    if !metadata.is_symlink() {
        return Ok(There::Foreign);
    }
    let to = fs::read_link(path)?;
    Ok(if to == target {
        There::Right
    } else if to.file_name() == target.file_name() {
        There::Ours
    } else {
        There::Foreign
    })
}

/// Makes a link under a passing name and renames it, so that the name is never missing meanwhile. What
/// has come into its place since it was looked at is not overwritten unless it was to be replaced.
fn make(link: &Link, target: &Path) -> io::Result<()> {
    if link.state == State::Made {
        return symlink(target, &link.path);
    }
    let passing = link
        .path
        .with_file_name(format!(".{}.{}", link.name, std::process::id()));
    symlink(target, &passing)?;
    fs::rename(&passing, &link.path).inspect_err(|_| {
        let _ = fs::remove_file(&passing);
    })
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    let path = plain(&path.to_string_lossy());
    Failure::new(
        ErrorCode::BadParams,
        format!("{path} cannot be used: {error}"),
    )
}

fn render(installed: &Installed) -> String {
    let mut text = String::new();
    for link in &installed.links {
        let note = match link.state {
            State::Made => "",
            State::Kept => " (was there)",
            State::Replaced => " (replaced)",
        };
        let path = plain(&link.path.to_string_lossy());
        text.push_str(&format!("{path} runs `handover {}`{note}\n", link.command));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(dir: &Path, target: &str, force: bool) -> Result<Vec<State>, String> {
        install(dir.to_owned(), target.into(), force)
            .map(|installed| installed.links.iter().map(|link| link.state).collect())
            .map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn names_mean_commands() {
        let args = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let meant = meant(args(&["/usr/bin/swarm-attach", "a1", "--json"]));
        assert_eq!(meant, args(&["handover", "follow", "a1", "--json"]));
        let own = args(&["/usr/bin/handover", "swarm-list"]);
        assert_eq!(super::meant(own.clone()), own);
        assert_eq!(super::meant(Vec::new()), Vec::<OsString>::new());
    }

    #[test]
    fn links_are_made_kept_and_renewed() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(
            states(dir.path(), "/a/handover", false),
            Ok(vec![State::Made; 5])
        );
        assert_eq!(
            states(dir.path(), "/a/handover", false),
            Ok(vec![State::Kept; 5])
        );
        assert_eq!(
            states(dir.path(), "/b/handover", false),
            Ok(vec![State::Replaced; 5])
        );
        let link = fs::read_link(dir.path().join("swarm-steer")).unwrap();
        assert_eq!(link, Path::new("/b/handover"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 5);
    }

    #[test]
    fn what_is_not_ours_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("swarm-abort");
        fs::write(&file, "mine").unwrap();
        symlink("/usr/bin/true", dir.path().join("swarm-list")).unwrap();
        let refused = states(dir.path(), "/a/handover", false).unwrap_err();
        assert!(
            refused.contains("swarm-abort") && refused.contains("swarm-list"),
            "{refused}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        assert!(states(dir.path(), "/a/handover", true).is_ok());
        assert!(fs::read_link(&file).is_ok());
    }

    #[test]
    fn a_directory_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("swarm-list")).unwrap();
        assert!(states(dir.path(), "/a/handover", true).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
