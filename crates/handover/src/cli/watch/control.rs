//! `handover watch --control`: one takeover from its grant to its end.

mod end;
mod heard;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use handover_protocol::{
    ControlAcquireParams, ControlAcquireResult, ControlRequestParams, ControlStatusParams,
    ControlStatusResult, DesktopId, ErrorCode, LeaseParams, Method, ViewOpenResult,
};
use serde_json::{json, to_value};
use tokio::process::Child;
use tokio::sync::mpsc;

use self::heard::{Asking, Call};
use super::super::context::Context;
use super::super::duration;
use super::super::failure::Failure;
use super::super::session::Session;
use super::Args;
use super::asked;
use super::ended::{Cause, Outcome};
use super::heartbeat::{self, Beat, Pulse};
use super::screen::{self, Screen};
use super::signals::{self, Signals};
use super::viewer::{self, Choice};
use super::{keyboard, screen::granted};
use crate::notify::terminal::Attention;

/// How often the line is brought up to date.
const REFRESH: Duration = Duration::from_secs(1);

/// How long the person in control may take to answer somebody who asks for it.
const ASKING: Duration = Duration::from_secs(60);

/// A takeover under way.
struct Takeover {
    session: Session,
    desktop: DesktopId,
    lease: ControlAcquireResult,
    note: Option<String>,
    screen: Screen,
    attention: Attention,
    /// What the person was called to the terminal for last, until it has passed.
    called: Option<Call>,
    granted_at: Instant,
    expires_at: Instant,
    /// Whether somebody asks for control.
    asking: Asking,
    /// Until when a viewer must have connected, if one must.
    viewer_due: Option<Instant>,
    viewer_seen: bool,
    /// The viewer that was opened. It is closed only after control has returned: its end would be
    /// taken for the person's.
    viewer: Option<Child>,
}

/// Takes control and holds it until it ends.
pub async fn run(
    args: Args,
    session: Session,
    socket: PathBuf,
    desktop: DesktopId,
    view: ViewOpenResult,
    attention: Attention,
    context: &Context,
) -> Result<(), Failure> {
    // From here on a signal must not just end the program.
    let mut signals = Signals::catch()?;
    let params = ControlAcquireParams {
        desktop: Some(desktop.clone()),
        viewer: Some(view.viewer.clone()),
        ttl_ms: args.ttl.map(duration::ms),
        drain_ms: args.drain.map(duration::ms),
        idle_ms: args.idle.map(duration::ms),
        max_ms: args.max.map(duration::ms),
        private: args.private.then_some(true),
        note: args.note.clone(),
        ..Default::default()
    };
    let lease: ControlAcquireResult = tokio::select! {
        lease = acquire(&session, params, args.ask) => lease?,
        // The connection closes with us, and the host forgets what was asked for.
        _ = signals.next() => return Err(Failure::interrupted()),
    };
    let now = Instant::now();
    let mut takeover = Takeover {
        expires_at: now + Duration::from_millis(lease.expires_in_ms),
        granted_at: now,
        session,
        desktop,
        lease,
        note: args.note.clone(),
        screen: Screen::new(context.json),
        attention,
        called: None,
        asking: Asking::Never,
        viewer_due: None,
        viewer_seen: false,
        viewer: None,
    };
    let beats = heartbeat::start(Pulse {
        socket,
        lease: takeover.lease_params(),
        every: Duration::from_millis(takeover.lease.heartbeat_ms.max(10)),
        ttl: Duration::from_millis(takeover.lease.ttl_ms),
    })?;
    let outcome = takeover.hold(&args, &view, &mut signals, beats).await?;
    takeover.attention.rest();
    // Nothing is lost if nobody can read it any more.
    let _ = takeover.screen.tell(&outcome.text(), Some(outcome.json()));
    if matches!(outcome.cause, Cause::Suspended) {
        signals::suspend()?;
    }
    outcome.result()
}

/// Takes control, or asks whoever has it.
async fn acquire(
    session: &Session,
    params: ControlAcquireParams,
    ask: bool,
) -> Result<ControlAcquireResult, Failure> {
    if !ask {
        let drain = Duration::from_millis(params.drain_ms.unwrap_or(0));
        return session
            .call_longer(Method::ControlAcquire, &params, drain)
            .await;
    }
    let wait_ms = Some(duration::ms(ASKING));
    let params = ControlRequestParams {
        wait_ms,
        ..params.into()
    };
    // The host ends it in time; the person may end it earlier.
    session.wait_for(Method::ControlRequest, &params).await
}

impl Takeover {
    fn lease_params(&self) -> LeaseParams {
        LeaseParams {
            lease_id: self.lease.lease_id.clone(),
            token: self.lease.token.clone(),
        }
    }

    /// Opens a viewer and holds control until something ends it.
    async fn hold(
        &mut self,
        args: &Args,
        view: &ViewOpenResult,
        signals: &mut Signals,
        beats: mpsc::UnboundedReceiver<Beat>,
    ) -> Result<Outcome, Failure> {
        asked::listen(&self.session).await;
        self.announce(view);
        let cause = match viewer::open(&args.viewer, &view.socket_path, true) {
            Err(failure) => Cause::NoViewer(failure.message().to_owned()),
            Ok(viewer) => {
                if viewer.is_none() {
                    let _ = self.screen.tell(&viewer::ways(&view.socket_path), None);
                    if args.viewer == Choice::Auto {
                        self.viewer_due = Some(Instant::now() + args.wait);
                    }
                }
                self.viewer = viewer;
                self.wait_for_end(signals, beats).await?
            }
        };
        self.finish(cause).await
    }

    fn announce(&mut self, view: &ViewOpenResult) {
        let lease = &self.lease;
        let json = json!({
            "event": "acquired",
            "desktop": self.desktop,
            "leaseId": lease.lease_id,
            "epoch": lease.epoch,
            "ttlMs": lease.ttl_ms,
            "heartbeatMs": lease.heartbeat_ms,
            "expiresInMs": lease.expires_in_ms,
            "viewer": view.viewer,
            "socketPath": view.socket_path,
            "foreignClients": lease.foreign_clients,
        });
        let text = granted(&self.desktop, &lease.foreign_clients);
        let _ = self.screen.say(&text, json);
    }

    /// Waits until something ends the takeover, and says what. The lease may still be live then.
    async fn wait_for_end(
        &mut self,
        signals: &mut Signals,
        mut beats: mpsc::UnboundedReceiver<Beat>,
    ) -> Result<Cause, Failure> {
        let mut lines = keyboard::lines()?;
        let mut refresh = tokio::time::interval(REFRESH);
        refresh.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                asked = signals.next() => return Ok(match asked {
                    signals::Asked::Stop => Cause::Interrupted,
                    signals::Asked::Suspend => Cause::Suspended,
                }),
                Some(beat) = beats.recv() => match beat {
                    Beat::Renewed { expires_in } => self.expires_at = Instant::now() + expires_in,
                    Beat::Lost(refusal) => return Ok(Cause::Ended(Some(refusal))),
                },
                news = self.session.notifications.recv() => match news {
                    Some(news) => if self.heard(news) { return Ok(Cause::Ended(None)) },
                    None => return Err(host_gone()),
                },
                ended = viewer::closed(&mut self.viewer) => {
                    self.viewer = None;
                    let failed = ended.is_ok_and(|status| !status.success());
                    if failed && !self.viewer_seen {
                        let message = "the viewer ended at once; choose another with --viewer";
                        return Ok(Cause::NoViewer(message.to_owned()));
                    }
                    return Ok(Cause::Done);
                }
                Some(line) = lines.recv() => if self.typed(line).await? { return Ok(Cause::Done) },
                _ = refresh.tick() => if let Some(cause) = self.refresh().await? {
                    return Ok(cause);
                },
            }
        }
    }

    /// Brings the line up to date, and looks whether the takeover has to end.
    async fn refresh(&mut self) -> Result<Option<Cause>, Failure> {
        let status = match self.status().await {
            Ok(status) => status,
            // The heartbeat decides whether the lease is lost; this is only for show.
            Err(failure) if failure.code() == ErrorCode::Timeout => return Ok(None),
            Err(failure) if failure.code() == ErrorCode::SessionUnknown => return Err(host_gone()),
            // The desktop itself may be gone.
            Err(_) => return Ok(Some(Cause::Ended(None))),
        };
        let Some(lease) = status
            .lease
            .as_ref()
            .filter(|l| l.lease_id == self.lease.lease_id)
        else {
            return Ok(Some(Cause::Ended(None)));
        };
        if lease.viewer_connected && !self.viewer_seen {
            self.viewer_seen = true;
            self.viewer_due = None;
            let viewer = to_value(&lease.viewer).unwrap_or_default();
            let json = json!({ "event": "viewer", "viewer": viewer });
            let _ = self.screen.say("a viewer has connected", json);
        }
        if self.viewer_due.is_some_and(|due| due <= Instant::now()) {
            let message = "no viewer connected in time, so control was returned; \
                           see --wait and --viewer";
            return Ok(Some(Cause::NoViewer(message.to_owned())));
        }
        let now = Instant::now();
        self.calm(|call| call.until <= now);
        let left = duration::ms(self.expires_at.saturating_duration_since(now));
        let held = duration::ms(now - self.granted_at);
        let _ = self.screen.show(screen::line(&status, left, held));
        Ok(None)
    }

    async fn status(&self) -> Result<ControlStatusResult, Failure> {
        let params = ControlStatusParams {
            desktop: Some(self.desktop.clone()),
        };
        self.session.call(Method::ControlStatus, &params).await
    }
}

fn host_gone() -> Failure {
    super::host_gone("the host is gone, and your control with it")
}

#[cfg(test)]
mod tests;
