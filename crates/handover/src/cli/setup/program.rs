//! Where each program looks for its configuration, and how that is written.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use handover_protocol::ErrorCode;
use serde::Serialize;

use super::edit::{Dialect, Format, Json, Shape};
use crate::cli::failure::Failure;

/// An agent program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// Claude Code
    ClaudeCode,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
    /// pi, which knows no MCP: a skill tells it of the command line
    Pi,
}

/// How a program comes to know of Handover.
#[derive(Clone, Copy, Debug)]
pub enum Means {
    /// Its configuration names our servers among others, in this format.
    Servers(Format),
    /// A file of its own with this text.
    File(&'static str),
}

/// For whom a program is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// For this user, in every directory
    User,
    /// For this directory, and everyone who has it
    Project,
}

/// The surroundings in which programs look for their configuration.
pub struct Places<'a> {
    /// A variable of the environment, if it is set to something.
    pub variable: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// The working directory.
    pub directory: &'a Path,
}

impl Places<'_> {
    fn home(&self) -> Result<PathBuf, Failure> {
        (self.variable)("HOME").ok_or_else(|| {
            let message = "HOME is not set, so there is no configuration of this user";
            Failure::new(ErrorCode::BadParams, message)
        })
    }

    /// What a variable says, else a directory below the home directory.
    fn directory_of(&self, variable: &str, below_home: &str) -> Result<PathBuf, Failure> {
        match (self.variable)(variable) {
            Some(directory) => Ok(self.directory.join(directory)),
            None => Ok(self.home()?.join(below_home)),
        }
    }
}

impl Program {
    /// How it comes to know of Handover.
    pub fn means(self) -> Means {
        let json = |servers, dialect, shape| {
            Means::Servers(Format::Json(Json {
                servers,
                dialect,
                shape,
            }))
        };
        match self {
            Self::ClaudeCode => json("mcpServers", Dialect::Plain, Shape::CommandAndArgs),
            Self::Codex => Means::Servers(Format::Toml),
            Self::Gemini => json("mcpServers", Dialect::Comments, Shape::CommandAndArgs),
            Self::Opencode => json("mcp", Dialect::CommentsAndTrailingCommas, Shape::Local),
            Self::Pi => Means::File(include_str!("skill.md")),
        }
    }

    /// The file that it reads.
    pub fn file(self, scope: Scope, places: &Places<'_>) -> Result<PathBuf, Failure> {
        Ok(match (self, scope) {
            (Self::ClaudeCode, Scope::User) => claude_code(places)?,
            (Self::ClaudeCode, Scope::Project) => places.directory.join(".mcp.json"),
            (Self::Codex, Scope::User) => places
                .directory_of("CODEX_HOME", ".codex")?
                .join("config.toml"),
            (Self::Codex, Scope::Project) => places.directory.join(".codex/config.toml"),
            // What the variable names is a home directory.
            (Self::Gemini, Scope::User) => places
                .directory_of("GEMINI_CLI_HOME", "")?
                .join(".gemini/settings.json"),
            (Self::Gemini, Scope::Project) => places.directory.join(".gemini/settings.json"),
            (Self::Opencode, Scope::User) => opencode(
                &places
                    .directory_of("XDG_CONFIG_HOME", ".config")?
                    .join("opencode"),
            ),
            (Self::Opencode, Scope::Project) => opencode(places.directory),
            (Self::Pi, Scope::User) => places
                .directory_of("PI_CODING_AGENT_DIR", ".pi/agent")?
                .join("skills/handover/SKILL.md"),
            (Self::Pi, Scope::Project) => places.directory.join(".pi/skills/handover/SKILL.md"),
        })
    }

    /// What a person has to do for the program to use that file.
    pub fn note(self, scope: Scope) -> Option<&'static str> {
        match (self, scope) {
            (Self::ClaudeCode, Scope::Project) => {
                Some("Claude Code asks in this directory whether it may start the servers.")
            }
            (Self::Codex, Scope::Project) => {
                Some("Codex reads this file only where it was told to trust the directory.")
            }
            (Self::Gemini, _) => {
                Some("Gemini CLI starts servers only where it was told to trust the directory.")
            }
            (Self::Pi, _) => Some("pi knows no MCP: by this skill it uses the command line."),
            (Self::ClaudeCode | Self::Codex, Scope::User) | (Self::Opencode, _) => None,
        }
    }
}

/// An earlier version kept it elsewhere, and what is there still counts unless it is empty.
fn claude_code(places: &Places<'_>) -> Result<PathBuf, Failure> {
    let earlier = places
        .directory_of("CLAUDE_CONFIG_DIR", ".claude")?
        .join(".config.json");
    let is_used = earlier
        .metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0);
    if is_used {
        return Ok(earlier);
    }
    Ok(places
        .directory_of("CLAUDE_CONFIG_DIR", "")?
        .join(".claude.json"))
}

/// It reads both, and what is in the one with comments counts more.
fn opencode(directory: &Path) -> PathBuf {
    let with_comments = directory.join("opencode.jsonc");
    if with_comments.exists() {
        return with_comments;
    }
    directory.join("opencode.json")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;

    fn file(program: Program, scope: Scope, set: &[(&str, &Path)]) -> PathBuf {
        let variable = |name: &str| {
            let found = set.iter().find(|(set, _)| *set == name);
            found.map(|(_, value)| value.to_path_buf())
        };
        let places = Places {
            variable: &variable,
            directory: Path::new("/work"),
        };
        program.file(scope, &places).unwrap()
    }

    #[test]
    fn each_program_is_asked_in_its_own_way() {
        use Program::{ClaudeCode, Codex, Gemini, Opencode, Pi};
        use Scope::{Project, User};
        let home = ("HOME", Path::new("/home/ada"));
        for (program, scope, variable, expected) in [
            (ClaudeCode, User, None, "/home/ada/.claude.json"),
            (
                ClaudeCode,
                User,
                Some(("CLAUDE_CONFIG_DIR", "/c")),
                "/c/.claude.json",
            ),
            (ClaudeCode, Project, None, "/work/.mcp.json"),
            (Codex, User, None, "/home/ada/.codex/config.toml"),
            (
                Codex,
                User,
                Some(("CODEX_HOME", "c")),
                "/work/c/config.toml",
            ),
            (Codex, Project, None, "/work/.codex/config.toml"),
            (Gemini, User, None, "/home/ada/.gemini/settings.json"),
            (
                Gemini,
                User,
                Some(("GEMINI_CLI_HOME", "/g")),
                "/g/.gemini/settings.json",
            ),
            (Gemini, Project, None, "/work/.gemini/settings.json"),
            (
                Opencode,
                User,
                None,
                "/home/ada/.config/opencode/opencode.json",
            ),
            (
                Opencode,
                User,
                Some(("XDG_CONFIG_HOME", "/x")),
                "/x/opencode/opencode.json",
            ),
            (Opencode, Project, None, "/work/opencode.json"),
            (
                Pi,
                User,
                Some(("PI_CODING_AGENT_DIR", "/pi")),
                "/pi/skills/handover/SKILL.md",
            ),
            (Pi, Project, None, "/work/.pi/skills/handover/SKILL.md"),
        ] {
            let variable = variable.map(|(name, value)| (name, Path::new(value)));
            let set: Vec<_> = [home].into_iter().chain(variable).collect();
            assert_eq!(
                file(program, scope, &set),
                Path::new(expected),
                "{program:?} {set:?}"
            );
        }
    }

    #[test]
    fn what_an_earlier_claude_code_left_counts_unless_empty() {
        let dir = tempfile::tempdir().unwrap();
        let set = [("HOME", dir.path())];
        let earlier = dir.path().join(".claude/.config.json");
        fs::create_dir(dir.path().join(".claude")).unwrap();
        fs::write(&earlier, "").unwrap();
        let now = dir.path().join(".claude.json");
        assert_eq!(file(Program::ClaudeCode, Scope::User, &set), now);
        fs::write(&earlier, "{}").unwrap();
        assert_eq!(file(Program::ClaudeCode, Scope::User, &set), earlier);
    }

    #[test]
    fn opencode_has_comments_where_its_file_is_called_so() {
        let dir = tempfile::tempdir().unwrap();
        let set = [("XDG_CONFIG_HOME", dir.path())];
        let path = dir.path().join("opencode/opencode.jsonc");
        fs::create_dir(dir.path().join("opencode")).unwrap();
        fs::write(&path, "{}").unwrap();
        assert_eq!(file(Program::Opencode, Scope::User, &set), path);
    }

    #[test]
    fn without_a_home_there_is_no_configuration_of_the_user() {
        let places = Places {
            variable: &|_| None,
            directory: Path::new("/work"),
        };
        assert!(Program::Codex.file(Scope::User, &places).is_err());
        assert!(Program::Codex.file(Scope::Project, &places).is_ok());
    }

    #[test]
    fn every_command_that_the_skill_names_is_one() {
        let Means::File(skill) = Program::Pi.means() else {
            panic!("no skill");
        };
        // What stands between two backticks.
        let spans = skill.split('`').skip(1).step_by(2);
        let commands: Vec<_> = spans.filter(|span| span.starts_with("handover ")).collect();
        assert!(commands.len() > 10, "{commands:?}");
        for command in commands {
            let words = command.split_whitespace().map(|word| match word {
                "X" | "Y" | "STEPS" => "7",
                word => word,
            });
            if let Err(error) = crate::cli::Cli::try_parse_from(words) {
                panic!("`{command}`: {error}");
            }
        }
        // A part of one would have to be put together by whoever reads it.
        assert!(!skill.contains("`takeover"), "{skill}");
    }
}
