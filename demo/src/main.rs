//! `make demo`: an agent gets stuck at a password, a person takes over, the agent goes on.
//!
//! The demo plays all parts on real programs: a web site on loopback, a Handover session with a
//! desktop, Chromium on it, and an agent that speaks MCP to `handover mcp` as any agent would. The
//! person is whoever sits at the terminal, or, without one, a program with an RFB connection. It
//! ends with exit code 0 only if the whole story happened and is on record.

mod agent;
mod check;
mod failure;
mod mcp;
mod person;
mod picture;
mod screen;
mod session;
mod site;
mod wait;

use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use agent::Agent;
use failure::Failure;
use person::Person;
use session::Session;
use site::Site;

/// Exit code of a run that was interrupted, as shells expect it.
const INTERRUPTED: u8 = 130;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(Some(report)) => {
            tell("demo", "The whole story happened and is on record.");
            // The report is there, also for somebody who does not read where.
            let _ = writeln!(io::stdout(), "{}", report.display());
            ExitCode::SUCCESS
        }
        Ok(None) => {
            tell("demo", "Interrupted; everything was ended.");
            ExitCode::from(INTERRUPTED)
        }
        Err(failure) => {
            tell("demo", &format!("The story did not happen: {failure}"));
            ExitCode::FAILURE
        }
    }
}

/// Says what is happening, on standard error; standard output carries only the report's path.
pub fn tell(who: &str, what: &str) {
    // On a terminal the live line of `handover watch` may stand here; it is drawn anew below.
    let clear = if io::stderr().is_terminal() {
        "\r\x1b[K"
    } else {
        ""
    };
    // A terminal that was closed must not keep the session from being ended.
    let _ = writeln!(io::stderr(), "{clear}{who:>7}  {what}");
}

/// Plays the story in a session of its own and cleans up, whatever happens. `None` is an interrupt.
async fn run() -> Result<Option<PathBuf>, Failure> {
    // Caught from the start, so that nothing that was started outlives an interrupt.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let handover = std::env::current_exe()?.with_file_name("handover");
    if !handover.exists() {
        let missing = handover.display();
        return Err(Failure::new(format!(
            "{missing} is missing; build it with `cargo build`"
        )));
    }
    let place = Place::new()?;
    let site = Site::start().await?;
    tell(
        "demo",
        &format!(
            "a harbour office with a login page is open at {}",
            site.url()
        ),
    );
    let session = Session::start(&handover, &place.project()).await?;
    tell(
        "demo",
        &format!(
            "session {} is up with desktop {}",
            session.id, session.desktop
        ),
    );

    let told = tokio::select! {
        told = play(&handover, &session, &site, &place) => told.map(Some),
        _ = interrupt.recv() => Ok(None),
        _ = terminate.recv() => Ok(None),
        _ = hang_up.recv() => Ok(None),
    };
    tell("demo", "ends the session and everything on its desktop");
    let stopped = session.stop().await;
    let report = told?;
    stopped?;
    Ok(report)
}

/// The story itself, up to the report.
async fn play(
    handover: &Path,
    session: &Session,
    site: &Site,
    place: &Place,
) -> Result<PathBuf, Failure> {
    let person = Person::present();
    let mut agent = Agent::start(handover, &session.id).await?;
    agent.begin(&site.url(), &place.profile()?).await?;
    let request = agent.ask().await?;

    let refused = Notify::new();
    let (note, ()) = tokio::try_join!(
        agent.stand_by(&request, &refused, person.time()),
        person.help(session, site, &refused),
    )?;
    match note {
        Some(note) => tell(
            "agent",
            &format!("has the desktop back, with the note: {note}"),
        ),
        None => tell("agent", "has the desktop back, without a note"),
    }

    let title = agent.finish().await?;
    agent.leave().await?;
    if title != site.secret_title() {
        let secret = site.secret_title();
        return Err(Failure::new(format!(
            "the agent read {title:?}, the page says {secret:?}"
        )));
    }
    check::story(&session.events().await?, person.note())?;
    session.verify().await?;
    session.report().await
}

/// The demo's directories, removed when it ends.
struct Place {
    root: PathBuf,
}

impl Place {
    fn new() -> io::Result<Self> {
        let root = std::env::temp_dir().join(format!("handover-demo-{}", std::process::id()));
        // Chromium's profile holds what stands for the signed-in visitor: nobody else may read it.
        std::fs::DirBuilder::new().mode(0o700).create(&root)?;
        let place = Self { root };
        std::fs::create_dir(place.project())?;
        Ok(place)
    }

    /// The project that the session belongs to.
    fn project(&self) -> PathBuf {
        self.root.join("harbour")
    }

    /// A fresh Chromium profile that does not offer to keep passwords.
    fn profile(&self) -> io::Result<PathBuf> {
        let profile = self.root.join("profile");
        std::fs::create_dir_all(profile.join("Default"))?;
        let preferences =
            r#"{"credentials_enable_service":false,"profile":{"password_manager_enabled":false}}"#;
        std::fs::write(profile.join("Default").join("Preferences"), preferences)?;
        Ok(profile)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed now is in the temporary directory all the same.
        let _ = std::fs::remove_dir_all(&self.root);
    }
}
