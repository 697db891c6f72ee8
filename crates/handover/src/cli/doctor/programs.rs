//! The programs that are started.

use std::path::PathBuf;

use super::{Check, Need};

struct Program {
    name: &'static str,
    /// Any of these will do.
    files: &'static [&'static str],
    need: Need,
    /// What it is for.
    purpose: &'static str,
    /// What installs it.
    remedy: &'static str,
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "Xvnc",
        files: &["Xtigervnc", "Xvnc"],
        need: Need::Required,
        purpose: "runs the desktops",
        remedy: "sudo apt install tigervnc-standalone-server",
    },
    Program {
        name: "window manager",
        files: &["openbox"],
        need: Need::Recommended,
        purpose: "manages the windows of a desktop",
        remedy: "sudo apt install openbox",
    },
    Program {
        name: "viewer",
        files: &["xtigervncviewer", "vncviewer"],
        need: Need::Recommended,
        purpose: "shows a desktop to a person who sits at this machine",
        remedy: "sudo apt install tigervnc-viewer",
    },
    Program {
        name: "unshare",
        files: &["unshare"],
        need: Need::Recommended,
        purpose: "cuts desktops off from the network",
        remedy: "sudo apt install util-linux",
    },
    Program {
        name: "pi",
        files: &["pi"],
        need: Need::Optional,
        purpose: "is what agents of the driver pi run",
        remedy: "npm install -g @earendil-works/pi-coding-agent",
    },
    Program {
        name: "codex",
        files: &["codex"],
        need: Need::Optional,
        purpose: "is what agents of the driver codex run",
        remedy: "npm install -g @openai/codex",
    },
    Program {
        name: "claude",
        files: &["claude"],
        need: Need::Optional,
        purpose: "is what agents of the driver claude run",
        remedy: "npm install -g @anthropic-ai/claude-code",
    },
];

/// Looks for each program.
pub fn check() -> Vec<Check> {
    PROGRAMS
        .iter()
        .map(|program| look(program, &directories()))
        .collect()
}

fn directories() -> Vec<PathBuf> {
    std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default()
}

fn look(program: &Program, directories: &[PathBuf]) -> Check {
    let found = program
        .files
        .iter()
        .flat_map(|file| {
            directories
                .iter()
                .map(move |directory| directory.join(file))
        })
        .find(|file| file.is_file());
    match found {
        Some(file) => Check::good(program.name, program.need, file.display().to_string()),
        None => Check::bad(
            program.name,
            program.need,
            format!(
                "{} not found; it {}",
                program.files.join(" or "),
                program.purpose
            ),
            program.remedy,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_and_not_found() {
        let dir = tempfile::tempdir().unwrap();
        let look = || look(&PROGRAMS[0], &[dir.path().to_owned()]);
        assert!(!look().ok);
        assert!(
            look()
                .remedy
                .is_some_and(|remedy| remedy.contains("tigervnc"))
        );
        std::fs::write(dir.path().join("Xvnc"), "").unwrap();
        assert!(look().ok);
    }
}
