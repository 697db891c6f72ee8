//! The person who helps: whoever sits at the terminal, or a program that acts as one would.

use std::io::IsTerminal;
use std::time::Duration;

use handover_protocol::client::{ANSWER_TIMEOUT, CONNECT_TIMEOUT, Client};
use handover_protocol::{
    ControlAcquireParams, ControlAcquireResult, ControlRenewParams, ControlRenewResult,
    ControlReturnParams, ControlReturnResult, DesktopId, Method, ViewOpenParams, ViewOpenResult,
};
use tokio::sync::Notify;

use crate::failure::Failure;
use crate::picture::close;
use crate::screen::Screen;
use crate::session::Session;
use crate::site::{self, Progress, Site};
use crate::{tell, wait};

/// Pixels that a field must at least cover to be taken for one.
const FIELD_PIXELS: usize = 4_000;
/// Pixels that the frame of a field with the focus must at least cover.
const FRAME_PIXELS: usize = 1_000;
/// How long the scripted person waits for anything to happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long somebody at a terminal may take from the request to the hand-back.
const LUNCH_BREAK: Duration = Duration::from_secs(30 * 60);

/// The note that the scripted person leaves.
pub const NOTE: &str = "Signed in. The page about the berth is open; please confirm the booking.";

/// Who plays the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Person {
    /// Whoever sits at the terminal, with a VNC viewer.
    AtTerminal,
    /// A program with an RFB connection and a script.
    Scripted,
}

impl Person {
    /// Somebody at the terminal if there is one and this is no automatic run.
    pub fn present() -> Self {
        let automatic = std::env::var_os("CI").is_some_and(|value| value == "true");
        let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        if terminal && !automatic {
            Self::AtTerminal
        } else {
            Self::Scripted
        }
    }

    /// The note that has to be on record afterwards, if it is known beforehand.
    pub fn note(self) -> Option<&'static str> {
        (self == Self::Scripted).then_some(NOTE)
    }

    /// How long the agent should wait for this person.
    pub fn time(self) -> Duration {
        match self {
            Self::AtTerminal => LUNCH_BREAK,
            Self::Scripted => PATIENCE,
        }
    }

    /// Takes control, signs in and hands back. `refused` is told when the agent was refused.
    ///
    /// # Errors
    /// When control cannot be taken or the person did not sign in.
    pub async fn help(
        self,
        session: &Session,
        site: &Site,
        refused: &Notify,
    ) -> Result<(), Failure> {
        match self {
            Self::AtTerminal => invite(session, site).await,
            Self::Scripted => act(session, site, refused).await,
        }
    }
}

/// Hands the terminal to `handover watch --control`, which opens a viewer or says how to connect
/// one, and tells the person what to do.
async fn invite(session: &Session, site: &Site) -> Result<(), Failure> {
    tell(
        "demo",
        "It is your turn; `handover watch --control` gives you the desktop.",
    );
    tell(
        "demo",
        &format!(
            "  1. sign in on the page; the password is {}",
            site.password()
        ),
    );
    tell(
        "demo",
        "  2. hand back: type a note for the agent here and press Enter, or close the viewer",
    );
    let mut command = session.command("watch");
    command.args([&session.desktop, "--control", "--wait", "30m"]);
    let mut watch = command.kill_on_drop(true).spawn()?;
    let signed_in = async {
        site.reached(Progress::SignedIn).await;
        tell(
            "demo",
            "You are signed in. Now hand back: type a note here and press Enter, or close the viewer.",
        );
        std::future::pending().await
    };
    let status = tokio::select! {
        status = watch.wait() => status?,
        never = signed_in => never,
    };
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "`handover watch --control` ended with {status}"
    )))
}

/// Does what a person would do with a VNC viewer.
async fn act(session: &Session, site: &Site, refused: &Notify) -> Result<(), Failure> {
    let desktop = Some(DesktopId::from(session.desktop.as_str()));
    let (host, _) = Client::connect(&session.socket, CONNECT_TIMEOUT)
        .await
        .map_err(refusal)?;
    host.hello("demo", None).await.map_err(refusal)?;
    let open = ViewOpenParams {
        desktop: desktop.clone(),
    };
    let view: ViewOpenResult = call(&host, Method::ViewOpen, &open).await?;
    let mut screen = Screen::connect(view.socket_path.as_ref()).await?;
    screen.look().await?;

    let acquire = ControlAcquireParams {
        desktop,
        viewer: Some(view.viewer),
        note: Some("signing in for the agent".to_owned()),
        ..ControlAcquireParams::default()
    };
    let lease: ControlAcquireResult = call(&host, Method::ControlAcquire, &acquire).await?;
    tell("person", "takes control");
    tokio::select! {
        signed_in = sign_in(&mut screen, site) => signed_in?,
        never = keep(&host, &lease) => return Err(never),
    }
    tell(
        "person",
        "has signed in, with a password that neither the agent nor the record saw",
    );
    // The story is about exclusion, so it waits for the agent's vain attempt.
    let attempt = tokio::time::timeout(PATIENCE, refused.notified()).await;
    attempt.map_err(|_| Failure::new("the agent did not try to act in human time"))?;

    let give_back = ControlReturnParams {
        lease_id: Some(lease.lease_id),
        token: Some(lease.token),
        note: Some(NOTE.to_owned()),
        ..ControlReturnParams::default()
    };
    let returned: ControlReturnResult = call(&host, Method::ControlReturn, &give_back).await?;
    tell(
        "person",
        &format!(
            "hands back after {} ms with the note: {NOTE}",
            returned.held_ms
        ),
    );
    Ok(())
}

/// Clicks the password field, types the password and waits for the page behind it.
async fn sign_in(screen: &mut Screen, site: &Site) -> Result<(), Failure> {
    let (x, y) = sees(screen, site::PASSWORD_FIELD, "the password field").await?;
    tell(
        "person",
        &format!("clicks the password field at {x},{y} and types the password"),
    );
    screen.click(x, y).await?;
    wait::until("the focus in the password field", PATIENCE, async || {
        let frame = screen.look().await?.find(site::FOCUS_FRAME, FRAME_PIXELS);
        Ok(frame
            .filter(|middle| close(*middle, (x.into(), y.into())))
            .map(drop))
    })
    .await?;
    screen.type_text(site.password()).await?;
    screen.press("Return").await?;
    let signed_in = tokio::time::timeout(PATIENCE, site.reached(Progress::SignedIn)).await;
    signed_in.map_err(|_| Failure::new("the password did not reach the page"))?;
    sees(screen, site::CONFIRM_BUTTON, "the page behind the login").await?;
    Ok(())
}

/// Looks until something in that colour shows; returns its middle.
async fn sees(screen: &mut Screen, colour: [u8; 3], what: &str) -> Result<(u16, u16), Failure> {
    let (x, y) = wait::until(what, PATIENCE, async || {
        Ok(screen.look().await?.find(colour, FIELD_PIXELS))
    })
    .await?;
    let pixel = |value: usize| u16::try_from(value).map_err(|_| Failure::new("a point off screen"));
    Ok((pixel(x)?, pixel(y)?))
}

/// Renews the lease until that fails.
async fn keep(host: &Client, lease: &ControlAcquireResult) -> Failure {
    let renew = ControlRenewParams {
        lease_id: lease.lease_id.clone(),
        token: lease.token.clone(),
    };
    loop {
        tokio::time::sleep(Duration::from_millis(lease.heartbeat_ms)).await;
        let renewed = call::<_, ControlRenewResult>(host, Method::ControlRenew, &renew).await;
        if let Err(failure) = renewed {
            return failure;
        }
    }
}

async fn call<P, R>(host: &Client, method: Method, params: &P) -> Result<R, Failure>
where
    P: serde::Serialize,
    R: serde::de::DeserializeOwned,
{
    host.call(method, params, Some(ANSWER_TIMEOUT))
        .await
        .map_err(refusal)
}

fn refusal(error: handover_protocol::client::ClientError) -> Failure {
    Failure::Refused(error.into())
}
