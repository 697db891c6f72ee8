//! Programs that the host starts on a desktop, through the desktop's keeper.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use handover_protocol::{DesktopId, DesktopLaunchParams, ErrorCode, Refusal};

use crate::display::X11;
use crate::keeper::client::Keeper;
use crate::keeper::wire::Launch;
use crate::system::process::ProcessIdentity;
use crate::xvnc::{self, DesktopFiles};

/// Arguments and variables of one launch, in all.
const MAX_WORDS: usize = 4096;

/// Bytes of one argument or variable, the kernel's own limit.
const MAX_WORD: usize = 128 << 10;

/// How long an untrusted cookie lives without any client, in seconds.
const UNTRUSTED_IDLE_S: u32 = 60;

/// Time between TERM and KILL when a desktop ends.
const END_GRACE: Duration = Duration::from_secs(2);

/// Starts programs on one desktop.
#[derive(Debug)]
pub struct Programs {
    /// The parent of everything on the desktop.
    pub keeper: Keeper,
    /// The desktop's cookie and the like.
    pub files: DesktopFiles,
    /// The X display's number.
    pub display: u32,
    /// The desktop.
    pub desktop: DesktopId,
    /// The session, which programs find by `HANDOVER_SESSION`.
    pub session: String,
    /// Where programs run unless they say otherwise.
    pub project_dir: PathBuf,
    /// Where their output goes.
    pub logs: PathBuf,
    /// Numbers the logs.
    pub launches: AtomicU64,
}

impl Programs {
    /// What is to be launched, checked.
    ///
    /// # Errors
    /// `bad_params` for a command that is empty, too long, or no program;
    /// `display_unavailable` if an untrusted cookie cannot be had.
    pub async fn prepare(
        &self,
        params: &DesktopLaunchParams,
        x11: Option<&X11>,
    ) -> Result<Launch, Refusal> {
        let Some(program) = params.command.first().filter(|name| !name.is_empty()) else {
            return Err(Refusal::bad_param(
                "command",
                "`command` is empty; give the program and its arguments as a list",
            ));
        };
        let extra = params.env.clone().unwrap_or_default();
        let words = params
            .command
            .iter()
            .chain(extra.keys())
            .chain(extra.values());
        if words.clone().count() > MAX_WORDS || words.clone().any(|word| word.len() > MAX_WORD) {
            return Err(Refusal::bad_param(
                "command",
                format!("`command` and `env` are limited to {MAX_WORDS} words of {MAX_WORD} bytes"),
            ));
        }
        if words.clone().any(|word| word.contains('\0')) {
            return Err(Refusal::bad_param(
                "command",
                "`command` and `env` cannot hold a zero byte",
            ));
        }
        if let Some(name) = extra
            .keys()
            .find(|name| name.is_empty() || name.contains('='))
        {
            return Err(Refusal::bad_param(
                "env",
                format!(
                    "`env` has {name:?}, which no variable can be called; give a name without `=`"
                ),
            ));
        }
        let cwd = match &params.cwd {
            Some(cwd) => self.project_dir.join(cwd),
            None => self.project_dir.clone(),
        };
        if !cwd.is_dir() {
            return Err(Refusal::bad_param(
                "cwd",
                format!("`cwd` {} is no directory", cwd.display()),
            ));
        }
        let base = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let mut env = xvnc::application_env(&self.files, self.display, base);
        env.insert("HANDOVER_SESSION".into(), self.session.clone());
        // The display is the desktop's own, whatever is asked for.
        for (name, value) in &extra {
            let own = name == "DISPLAY" || name == "XAUTHORITY";
            if !own && !xvnc::NOT_FOR_PROGRAMS.contains(&name.as_str()) {
                env.insert(name.clone(), value.clone());
            }
        }
        xvnc::utf8_unless_set(&mut env, |name| extra.contains_key(name));
        // A relative path is one from where the program will run.
        let findable = if program.contains('/') {
            cwd.join(program).display().to_string()
        } else {
            program.clone()
        };
        if xvnc::find_program(&findable).is_none() {
            return Err(Refusal::bad_param(
                "command",
                format!("there is no executable program {program:?}; install it, or give its path"),
            ));
        }
        if params.untrusted.unwrap_or(false) {
            self.distrust(&mut env, x11).await?;
        }
        let number = self.launches.fetch_add(1, Ordering::Relaxed) + 1;
        let name = Path::new(program)
            .file_name()
            .map_or_else(|| "program".into(), |name| name.to_string_lossy());
        let name: String = name
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c))
            .take(40)
            .collect();
        Ok(Launch {
            command: params.command.clone(),
            cwd,
            env,
            log: self
                .logs
                .join(format!("{}-{number}-{name}.log", self.desktop)),
            stdio: None,
            channel: None,
        })
    }

    /// The environment of a program on the desktop, from `base`, in which the variables of which `is_given`
    /// says so were given for this program.
    pub fn environment(
        &self,
        base: impl IntoIterator<Item = (String, String)>,
        is_given: impl Fn(&str) -> bool,
    ) -> BTreeMap<String, String> {
        let mut env = xvnc::application_env(&self.files, self.display, base);
        xvnc::utf8_unless_set(&mut env, is_given);
        env
    }

    /// Replaces the desktop's cookie by one whose clients see neither other
    /// programs' windows nor their keys.
    async fn distrust(
        &self,
        env: &mut BTreeMap<String, String>,
        x11: Option<&X11>,
    ) -> Result<(), Refusal> {
        let unavailable = |why: String| {
            Refusal::new(
                ErrorCode::DisplayUnavailable,
                format!("no untrusted cookie for desktop {}: {why}", self.desktop),
            )
        };
        let x11 = x11.ok_or_else(|| unavailable("it has no X side".into()))?;
        let cookie = x11
            .untrusted_cookie(UNTRUSTED_IDLE_S)
            .await
            .map_err(|error| unavailable(error.to_string()))?;
        let name = format!("untrusted-{}", cookie.authorization);
        let path = self
            .files
            .write_other_xauthority(&name, &cookie.cookie)
            .map_err(|error| unavailable(error.to_string()))?;
        env.insert("XAUTHORITY".into(), path.display().to_string());
        Ok(())
    }

    /// Starts a program. Returns its pid and its log.
    ///
    /// # Errors
    /// `bad_params` if it cannot be started, `internal` if the keeper fails.
    pub async fn launch(&self, launch: Launch) -> Result<(u32, String), Refusal> {
        let process = self.keeper.launch(&launch).await.map_err(|error| {
            Refusal::bad_param(
                "command",
                format!(
                    "failed to launch {:?} on desktop {}: {error}",
                    launch.command.first().map_or("", String::as_str),
                    self.desktop
                ),
            )
        })?;
        Ok((process.pid, launch.log.display().to_string()))
    }

    /// Ends everything on the desktop, its display included. Answers what could
    /// not be killed.
    pub async fn end(&self) -> Vec<ProcessIdentity> {
        self.keeper.end(END_GRACE).await
    }
}
