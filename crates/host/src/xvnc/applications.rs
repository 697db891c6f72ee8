//! Programs on a desktop: their environment and the window manager.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::DesktopFiles;

/// Variables that would lead a program past its display: to the user's own compositor, session or
/// input method, or back to the terminal it was started from.
pub const NOT_FOR_PROGRAMS: &[&str] = &[
    "WAYLAND_DISPLAY",
    "WAYLAND_SOCKET",
    "GDK_BACKEND",
    "QT_QPA_PLATFORM",
    "SDL_VIDEODRIVER",
    "CLUTTER_BACKEND",
    "MOZ_ENABLE_WAYLAND",
    "ELECTRON_OZONE_PLATFORM_HINT",
    "XDG_ACTIVATION_TOKEN",
    "DESKTOP_STARTUP_ID",
    "SESSION_MANAGER",
    "WINDOWID",
    "XDG_SEAT",
    "XDG_VTNR",
];

/// The environment for programs on a desktop: `base` with `DISPLAY` and `XAUTHORITY` of the desktop,
/// and without Wayland. The user's message bus is left out too: a program of which one instance runs
/// already would otherwise open its window there, on the user's own screen.
pub fn application_env(
    files: &DesktopFiles,
    display: u32,
    base: impl IntoIterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = base
        .into_iter()
        .filter(|(name, _)| !NOT_FOR_PROGRAMS.contains(&name.as_str()))
        .collect();
    env.insert("DISPLAY".into(), format!(":{display}"));
    env.insert(
        "XAUTHORITY".into(),
        files.xauthority().display().to_string(),
    );
    env.insert("XDG_SESSION_TYPE".into(), "x11".into());
    env.insert("DBUS_SESSION_BUS_ADDRESS".into(), "disabled:".into());
    env
}

/// Which window manager a desktop gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum WindowManager {
    /// Openbox if it is installed, else none.
    #[default]
    Default,
    /// None at all.
    None,
    /// This program.
    Named(String),
}

/// The window manager that was asked for is not there.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the window manager {0} is not installed; install it, or use --wm none")]
pub struct NoWindowManager(pub String);

impl WindowManager {
    /// From the word after `--wm`; `none` is none.
    pub fn from_option(word: Option<&str>) -> Self {
        match word {
            None => Self::Default,
            Some("none") => Self::None,
            Some(name) => Self::Named(name.to_owned()),
        }
    }

    /// The command to launch, or none.
    pub fn command(&self) -> Result<Option<Vec<String>>, NoWindowManager> {
        match self {
            Self::None => Ok(None),
            Self::Default => {
                Ok(find_program("openbox").map(|path| vec![path.display().to_string()]))
            }
            Self::Named(name) => match find_program(name) {
                Some(path) => Ok(Some(vec![path.display().to_string()])),
                None => Err(NoWindowManager(name.clone())),
            },
        }
    }
}

/// Where a program is, by our `PATH`; a name with a slash is itself.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let is_executable = |path: &Path| {
        path.metadata()
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_executable(path));
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|directory| directory.join(name))
        .find(|path| is_executable(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leads_past_the_display() {
        let files = DesktopFiles {
            dir: "/run/s/d1".into(),
            rfb_socket: "/run/s/d1.rfb".into(),
            keeper_socket: "/run/s/keeper-d1.sock".into(),
            log: "/state/s/logs/d1-xvnc.log".into(),
            keeper_log: "/state/s/logs/d1-keeper.log".into(),
        };
        let base = [
            ("DISPLAY", ":0"),
            ("WAYLAND_DISPLAY", "wayland-0"),
            ("LANG", "de_DE.UTF-8"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let env = application_env(&files, 117, base);
        assert_eq!(env["DISPLAY"], ":117");
        assert_eq!(env["XAUTHORITY"], "/run/s/d1/Xauthority");
        assert_eq!(env["LANG"], "de_DE.UTF-8");
        assert!(!env.contains_key("WAYLAND_DISPLAY"));
    }

    #[test]
    fn window_managers() {
        let command = |word| WindowManager::from_option(word).command();
        assert_eq!(command(Some("none")), Ok(None));
        assert_eq!(
            command(Some("no-such-wm")),
            Err(NoWindowManager("no-such-wm".into()))
        );
        assert!(command(Some("sh")).unwrap().is_some());
    }
}
