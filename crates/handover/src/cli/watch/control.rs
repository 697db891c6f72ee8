//! `handover watch --control`: one takeover from its grant to its end.

use std::future;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use handover_protocol::client::Notification;
use handover_protocol::{
    ControlAcquireParams, ControlAcquireResult, ControlRequestParams, ControlReturnParams,
    ControlReturnResult, ControlStatusParams, ControlStatusResult, DesktopId, ErrorCode, HandBack,
    LeaseEnded, LeaseParams, LeaseRequest, LeaseWarning, Limit, Method, ReturnReason,
    ViewOpenResult,
};
use serde_json::{json, to_value};
use tokio::process::Child;
use tokio::sync::mpsc;

use super::super::context::Context;
use super::super::duration;
use super::super::failure::Failure;
use super::super::session::Session;
use super::super::text::{plain, shortened};
use super::Args;
use super::ended::{Cause, Outcome};
use super::heartbeat::{self, Beat, Pulse};
use super::screen::{self, Screen};
use super::signals::{self, Asked, Signals};
use super::viewer::{self, Choice};
use super::{keyboard, screen::granted};

/// How often the line is brought up to date.
const REFRESH: Duration = Duration::from_secs(1);

/// How long the hand-back may take after control has returned.
const HAND_BACK: Duration = Duration::from_secs(3);

/// How long the person in control may take to answer somebody who asks for it.
const ASKING: Duration = Duration::from_secs(60);

/// A takeover under way.
struct Takeover {
    session: Session,
    desktop: DesktopId,
    lease: ControlAcquireResult,
    note: Option<String>,
    screen: Screen,
    granted_at: Instant,
    expires_at: Instant,
    /// Somebody asked for control and waits for an answer.
    asked: bool,
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
    context: &Context,
) -> Result<(), Failure> {
    // From here on a signal must not just end the program.
    let mut signals = Signals::catch()?;
    let params = ControlAcquireParams {
        desktop: Some(desktop.clone()),
        viewer: Some(view.viewer.clone()),
        ttl_ms: args.ttl.map(duration::ms),
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
        asked: false,
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
        return session
            .call_patiently(Method::ControlAcquire, &params)
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
                    Asked::Stop => Cause::Interrupted,
                    Asked::Suspend => Cause::Suspended,
                }),
                Some(beat) = beats.recv() => match beat {
                    Beat::Renewed { expires_in } => self.expires_at = Instant::now() + expires_in,
                    Beat::Lost(refusal) => return Ok(Cause::Ended(Some(refusal))),
                },
                news = self.session.notifications.recv() => match news {
                    Some(news) => if self.heard(news) { return Ok(Cause::Ended(None)) },
                    None => return Err(host_gone()),
                },
                ended = closed(&mut self.viewer) => {
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

    /// Deals with a notification; true if the takeover has ended.
    fn heard(&mut self, news: Notification) -> bool {
        let params = news.params;
        match news.method.as_str() {
            "lease_ended" => serde_json::from_value::<LeaseEnded>(params)
                .is_ok_and(|ended| ended.lease_id == self.lease.lease_id),
            "lease_warning" => {
                if let Ok(warning) = serde_json::from_value::<LeaseWarning>(params) {
                    let left = duration::show(warning.left_ms);
                    let text = match warning.limit {
                        Limit::Idle => format!("control ends in {left} unless you do something"),
                        Limit::Maximum => format!("control ends in {left}, its time is over"),
                    };
                    let json = json!({
                        "event": "warning", "limit": warning.limit, "leftMs": warning.left_ms,
                    });
                    let _ = self.screen.say(&text, json);
                }
                false
            }
            "lease_request" => {
                if let Ok(request) = serde_json::from_value::<LeaseRequest>(params) {
                    self.asked = true;
                    let why = request
                        .note
                        .as_deref()
                        .map_or_else(String::new, |note| format!(" ({})", shortened(note, 200)));
                    let text = format!(
                        "{} asks for control{why}: type give or refuse and press Enter",
                        plain(&request.from)
                    );
                    let json = json!({
                        "event": "request", "from": request.from, "note": request.note,
                    });
                    let _ = self.screen.say(&text, json);
                }
                false
            }
            _ => false,
        }
    }

    /// Deals with a line from the keyboard; true if the person is done.
    async fn typed(&mut self, line: String) -> Result<bool, Failure> {
        let answer = match line.as_str() {
            "give" if self.asked => Method::ControlGive,
            "refuse" if self.asked => Method::ControlRefuse,
            _ => {
                if !line.is_empty() {
                    self.note = Some(line);
                }
                return Ok(true);
            }
        };
        self.asked = false;
        // After giving, the end of the lease is told like any other.
        let _: serde_json::Value = self
            .session
            .call_patiently(answer, &self.lease_params())
            .await?;
        Ok(false)
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

    /// Returns control if it is still held, and fetches the hand-back.
    async fn finish(&mut self, cause: Cause) -> Result<Outcome, Failure> {
        let reason = match cause {
            Cause::Done | Cause::Suspended => Some(ReturnReason::Return),
            Cause::Interrupted | Cause::NoViewer(_) => Some(ReturnReason::Cancelled),
            Cause::Ended(_) => None,
        };
        let returned = match reason {
            Some(reason) => self.give_back(reason).await?,
            None => None,
        };
        let hand_back = self.hand_back().await;
        Ok(Outcome {
            cause,
            returned,
            hand_back,
        })
    }

    /// `None` if the lease had ended already, for instance because its viewer closed.
    async fn give_back(
        &self,
        reason: ReturnReason,
    ) -> Result<Option<ControlReturnResult>, Failure> {
        let params = ControlReturnParams {
            lease_id: Some(self.lease.lease_id.clone()),
            token: Some(self.lease.token.clone()),
            desktop: None,
            reason: Some(reason),
            note: self.note.clone(),
        };
        match self.session.call(Method::ControlReturn, &params).await {
            Ok(result) => Ok(Some(result)),
            Err(failure) if failure.code() == ErrorCode::LeaseStale => Ok(None),
            Err(failure) if failure.code() == ErrorCode::SessionUnknown => Err(host_gone()),
            Err(failure) => Err(failure),
        }
    }

    /// The hand-back of this takeover. It may come a moment after control has returned.
    async fn hand_back(&self) -> Option<HandBack> {
        let deadline = Instant::now() + HAND_BACK;
        while Instant::now() < deadline {
            let status = self.status().await.ok()?;
            match status.last_hand_back {
                Some(hand_back) if hand_back.epoch > self.lease.epoch => return Some(hand_back),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        None
    }
}

/// Waits until the viewer is closed; for ever if there is none.
async fn closed(viewer: &mut Option<Child>) -> std::io::Result<std::process::ExitStatus> {
    match viewer {
        Some(viewer) => viewer.wait().await,
        None => future::pending().await,
    }
}

fn host_gone() -> Failure {
    Failure::new(
        ErrorCode::SessionUnknown,
        "the host is gone, and your control with it",
    )
}

#[cfg(test)]
mod tests;
