//! A desktop for the rest of the host: each method of the wire as one call.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine;
use handover_control::{ControllerId, GiveBack, OwnerId, PauseReason, PermitId, ViewerId};
use handover_protocol::{
    ActionResult, ControlAcquireParams, ControlAcquireResult, ControlAnswerResult,
    ControlChangeParams, ControlCompleteParams, ControlCompleteResult, ControlPermitParams,
    ControlPermitResult, ControlReclaimParams, ControlRenewResult, ControlRequestParams,
    ControlReturnParams, ControlReturnResult, ControlSecretParams, ControlSecretResult,
    ControlStatusResult, DesktopClickParams, DesktopDragParams, DesktopId, DesktopKeyParams,
    DesktopLaunchParams, DesktopLaunchResult, DesktopMoveParams, DesktopScreenshotParams,
    DesktopScreenshotResult, DesktopScrollParams, DesktopTypeParams, DesktopView,
    DesktopWindowsParams, DesktopWindowsResult, ErrorCode, LeaseParams, Refusal, ReturnReason,
    Size, TypeMethod, ViewOpenParams, ViewOpenResult, ViewerName,
};
use handover_rfb::typing::KEYS_LIMIT;
use serde_json::Map;
use tokio::sync::{mpsc, watch};

use super::acting::{HOST, Queued};
use super::action::{self, Action, Bounds, Lacking};
use super::by::By;
use super::command::{Answer, Ask, Command, LeaseProof, Look};
use super::links::Links;
use super::programs::Programs;
use super::requests::reply;
use super::survey;
use super::terms;
use super::view::ControlView;
use crate::attach;
use crate::callers::{Caller, ConnectionId};
use crate::display::CaptureError;
use crate::viewer::Viewers;

/// How long a person waits for the holder's answer if they do not say.
const DEFAULT_REQUEST_WAIT_MS: u64 = 60_000;

/// The longest that a person may wait for it.
const MAX_REQUEST_WAIT_MS: u64 = 600_000;

/// The longest word that says what a permit is for, in bytes.
const MAX_WHAT: usize = 256;

/// What a handle is made of.
pub(super) struct Inner {
    pub(super) id: DesktopId,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) view: watch::Receiver<ControlView>,
    pub(super) links: Arc<Links>,
    pub(super) viewers: Viewers,
    /// Numbers viewers through the whole session.
    pub(super) viewer_numbers: Arc<AtomicU64>,
    /// Where a viewer's socket is.
    pub(super) viewer_socket: Box<dyn Fn(&ViewerName) -> PathBuf + Send + Sync>,
    pub(super) programs: Option<Programs>,
    /// The size as last heard.
    pub(super) last_size: std::sync::Mutex<Size>,
}

/// A desktop. Clones are the same desktop.
#[derive(Clone)]
pub struct DesktopHandle(pub(super) Arc<Inner>);

impl std::fmt::Debug for DesktopHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DesktopHandle").field(&self.0.id).finish()
    }
}

impl DesktopHandle {
    fn gone(&self) -> Refusal {
        Refusal::new(
            ErrorCode::DesktopGone,
            format!("desktop {} has ended; make a new one", self.0.id),
        )
    }

    async fn ask<T>(&self, command: impl FnOnce(Answer<T>) -> Command) -> Result<T, Refusal> {
        let (answer, answered) = reply();
        self.0
            .commands
            .send(command(answer))
            .await
            .map_err(|_| self.gone())?;
        answered.await.map_err(|_| self.gone())?
    }

    /// Tells the desktop something that needs no answer.
    async fn tell(&self, command: Command) {
        // A desktop that has ended needs to know nothing.
        let _ = self.0.commands.send(command).await;
    }

    fn bounds(&self) -> Bounds {
        let size = self.size();
        Bounds {
            width: size.width,
            height: size.height,
        }
    }

    /// The size of its framebuffer, as last heard.
    pub fn size(&self) -> Size {
        let mut last = self
            .0
            .last_size
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((width, height)) = self.0.links.screen.known_size() {
            *last = Size { width, height };
        }
        *last
    }

    async fn act(&self, caller: &Caller, action: Action) -> Result<ActionResult, Refusal> {
        let by = By::from(caller);
        let observer = by.observer.clone();
        let epoch = self
            .ask(|reply| Command::Act(Queued { by, action, reply }))
            .await?;
        Ok(ActionResult {
            epoch,
            hand_back: self.untold(observer).await,
        })
    }

    /// The action, or its refusal on record.
    async fn checked(
        &self,
        caller: &Caller,
        kind: &'static str,
        action: Result<Action, Refusal>,
    ) -> Result<Action, Refusal> {
        if let Err(refusal) = &action {
            self.record(caller, kind, "refused", Some(refusal), Map::new())
                .await;
        }
        action
    }

    async fn record(
        &self,
        caller: &Caller,
        kind: &'static str,
        outcome: &str,
        refusal: Option<&Refusal>,
        mut fields: Map<String, serde_json::Value>,
    ) {
        fields.insert("outcome".into(), outcome.into());
        if let Some(refusal) = refusal {
            fields.insert("code".into(), refusal.code.as_str().into());
        }
        self.tell(Command::Record {
            kind,
            by: By::from(caller),
            fields,
        })
        .await;
    }

    async fn untold(&self, observer: String) -> Option<handover_protocol::HandBack> {
        let (reply, answered) = tokio::sync::oneshot::channel();
        self.tell(Command::Tell { observer, reply }).await;
        answered.await.ok().flatten()
    }

    async fn host_permit(
        &self,
        caller: &Caller,
        what: &str,
    ) -> Result<(PermitId, handover_control::Epoch), Refusal> {
        let by = By::from(caller);
        let what = what.to_owned();
        self.ask(|reply| Command::Permit {
            by,
            owner: HOST,
            what,
            reply,
        })
        .await
    }

    async fn host_complete(&self, permit: PermitId) {
        let done = self.ask(|reply| Command::Complete {
            permit,
            by: None,
            reply,
        });
        // A desktop that has ended holds no permit.
        let _ = done.await;
    }

    async fn acquiring(
        &self,
        caller: &Caller,
        params: ControlAcquireParams,
        of_holder: bool,
    ) -> Result<ControlAcquireResult, Refusal> {
        let by = By::from(caller);
        let (lease, token) = terms::new_lease()?;
        let terms = terms::terms(&params, by.connection, lease, terms::hash(&token))?;
        self.ask(|reply| {
            Command::Acquire(Ask {
                by,
                terms,
                token,
                note: params.note,
                of_holder,
                reply,
            })
        })
        .await
    }

    fn proof(params: &LeaseParams) -> Result<LeaseProof, Refusal> {
        terms::proof(&params.lease_id, &params.token)
    }

    async fn answer_request(
        &self,
        params: LeaseParams,
        give: bool,
    ) -> Result<ControlStatusResult, Refusal> {
        let lease = Self::proof(&params)?;
        self.ask(|reply| Command::AnswerRequest { lease, give, reply })
            .await
    }

    /// Lets nobody act, for a reason of the host's own.
    ///
    /// # Errors
    /// `desktop_gone`.
    pub async fn pause_for(&self, reason: PauseReason) -> Result<ControlStatusResult, Refusal> {
        self.ask(|reply| Command::Pause {
            by: None,
            reason,
            reply,
        })
        .await
    }

    /// The display's process has ended.
    pub async fn server_gone(&self) {
        self.tell(Command::ServerGone).await;
    }

    /// Takes control away from whoever has it, for the end of the session.
    pub async fn revoke_for_end(&self, caller: &Caller) {
        let by = By::from(caller);
        let revoked = self.ask(|reply| Command::Revoke {
            by,
            force: true,
            reply,
        });
        // A desktop that has ended is controlled by nobody.
        let _ = revoked.await;
    }

    /// No process of this owner of permits is left.
    pub async fn owner_gone(&self, owner: OwnerId) {
        self.tell(Command::OwnerGone(owner)).await;
    }

    /// Ends the desktop's task; its viewers end with it.
    pub async fn close(&self) {
        let (done, ended) = tokio::sync::oneshot::channel();
        self.tell(Command::Close(done)).await;
        // Already ended is ended.
        let _ = ended.await;
    }

    /// Ends what runs on the display.
    pub(crate) fn programs(&self) -> Option<&Programs> {
        self.0.programs.as_ref()
    }

    /// A permit for the end of the desktop, which passes the gate like input.
    ///
    /// # Errors
    /// As for every act.
    pub async fn permit_to_end(&self, caller: &Caller) -> Result<(), Refusal> {
        // The permit ends with the desktop's task; a takeover that begins in
        // between waits for it and is told that the desktop is gone.
        self.host_permit(caller, "desktop.destroy").await.map(drop)
    }

    /// Who has control, as it changes.
    pub fn control(&self) -> watch::Receiver<ControlView> {
        self.0.view.clone()
    }

    /// Starts a program for the host itself, such as the window manager.
    ///
    /// # Errors
    /// As for `desktop.launch`.
    pub async fn launch_as_host(&self, params: &DesktopLaunchParams) -> Result<(), Refusal> {
        let Some(programs) = &self.0.programs else {
            return Ok(());
        };
        let launch = programs.prepare(params, None).await?;
        programs.launch(launch).await.map(drop)
    }

    /// Whether agents may act now.
    ///
    /// # Errors
    /// What an act would be refused with.
    pub async fn agents_may_act(&self) -> Result<(), Refusal> {
        self.ask(Command::MayAct).await
    }

    /// The first character that the display's keyboard has no key for. Texts
    /// that are pasted anyway are not looked at.
    async fn lacks(&self, params: &DesktopTypeParams) -> Option<Lacking> {
        let x11 = self.0.links.x11.as_ref()?;
        let pasted = params.method == Some(TypeMethod::Paste) || params.text.chars() > KEYS_LIMIT;
        if pasted && params.method != Some(TypeMethod::Keys) {
            return None;
        }
        // A display that does not answer will not take keys either, and says so
        // then.
        let lacking = survey::in_time(x11.untypable(params.text.expose())).await??;
        Some(Lacking {
            index: lacking.index,
            character: lacking.character,
        })
    }

    async fn looked(
        &self,
        caller: &Caller,
        params: &DesktopScreenshotParams,
    ) -> Result<DesktopScreenshotResult, Refusal> {
        let by = By::from(caller);
        let observer = by.observer.clone();
        let look = self.look(by).await?;
        let picture = self.0.links.screen.capture().await.map_err(|error| {
            let code = ErrorCode::DisplayUnavailable;
            match error {
                CaptureError::AllBlack { .. } => Refusal::new(
                    code,
                    format!("the picture of desktop {} is all black, so the display may not be drawing; look at `desktop.windows` and launch something", self.0.id),
                ),
                error => Refusal::new(code, format!("no picture of desktop {}: {error}", self.0.id)),
            }
        })?;
        let inline = params.inline.unwrap_or(false);
        let path = if look.human {
            None
        } else {
            let kept = self.0.links.store.put_evidence(picture.png.to_vec(), "png");
            Some(
                kept.await
                    .map_err(|error| crate::record::not_recorded(&error))?
                    .path,
            )
        };
        // Control may have moved while the picture was on its way.
        let epoch = self.0.view.borrow().epoch;
        if epoch == look.epoch {
            self.tell(Command::Looked {
                observer: observer.clone(),
                epoch,
            })
            .await;
        }
        Ok(DesktopScreenshotResult {
            png: (inline || path.is_none())
                .then(|| base64::engine::general_purpose::STANDARD.encode(&picture.png)),
            path: path.map(|path| path.display().to_string()),
            width: picture.width.into(),
            height: picture.height.into(),
            sha256: picture.sha256,
            epoch: look.epoch.0,
            hand_back: self.untold(observer).await,
        })
    }

    async fn look(&self, by: By) -> Result<Look, Refusal> {
        self.ask(|reply| Command::Look { by, reply }).await
    }
}

impl attach::Desktop for DesktopHandle {
    fn id(&self) -> &DesktopId {
        &self.0.id
    }

    async fn view(&self) -> DesktopView {
        let status = self.ask(Command::Status).await.ok();
        let view = self.0.view.borrow().clone();
        DesktopView {
            id: self.0.id.clone(),
            size: self.size(),
            control: status
                .as_ref()
                .map_or(handover_protocol::Control::Paused, |status| status.control),
            phase: status
                .as_ref()
                .map_or(handover_protocol::Phase::Steady, |status| status.phase),
            epoch: status.as_ref().map_or(view.epoch.0, |status| status.epoch),
            lease: status.and_then(|status| status.lease),
        }
    }

    fn connection_closed(&self, connection: ConnectionId) {
        let this = self.clone();
        let command = Command::ConnectionGone(ControllerId(connection.0));
        // Usually there is room; if not, the news must not be lost.
        if let Err(mpsc::error::TrySendError::Full(command)) = self.0.commands.try_send(command) {
            tokio::spawn(async move { this.tell(command).await });
        }
    }

    async fn acquire(
        &self,
        caller: &Caller,
        params: ControlAcquireParams,
    ) -> Result<ControlAcquireResult, Refusal> {
        self.acquiring(caller, params, false).await
    }

    async fn renew(
        &self,
        _caller: &Caller,
        params: LeaseParams,
    ) -> Result<ControlRenewResult, Refusal> {
        let lease = Self::proof(&params)?;
        self.ask(|reply| Command::Renew { lease, reply }).await
    }

    async fn reclaim(
        &self,
        caller: &Caller,
        params: ControlReclaimParams,
    ) -> Result<ControlAcquireResult, Refusal> {
        let lease = terms::proof(&params.lease_id, &params.token)?;
        let viewer: Option<ViewerId> = params.viewer.as_ref().map(terms::viewer_id).transpose()?;
        let by = By::from(caller);
        self.ask(|reply| Command::Reclaim {
            by,
            lease,
            token: params.token,
            viewer,
            reply,
        })
        .await
    }

    async fn give_back(
        &self,
        caller: &Caller,
        params: ControlReturnParams,
    ) -> Result<ControlReturnResult, Refusal> {
        terms::check_note(params.note.as_deref())?;
        let lease = match (&params.lease_id, &params.token) {
            (Some(lease), Some(token)) => Some(terms::proof(lease, token)?),
            (None, None) => None,
            _ => {
                return Err(Refusal::new(
                    ErrorCode::BadParams,
                    "`leaseId` and `token` go together; give both or neither",
                ));
            }
        };
        let how = match params.reason.unwrap_or_default() {
            ReturnReason::Return => GiveBack::Return,
            ReturnReason::Cancelled => GiveBack::Cancelled,
        };
        let by = By::from(caller);
        self.ask(|reply| Command::Return {
            by,
            how,
            lease,
            note: params.note,
            reply,
        })
        .await
    }

    async fn status(&self, _caller: &Caller) -> Result<ControlStatusResult, Refusal> {
        self.ask(Command::Status).await
    }

    async fn revoke(
        &self,
        caller: &Caller,
        params: ControlChangeParams,
    ) -> Result<ControlStatusResult, Refusal> {
        let by = By::from(caller);
        let force = params.force.unwrap_or(false);
        self.ask(|reply| Command::Revoke { by, force, reply }).await
    }

    async fn pause(
        &self,
        caller: &Caller,
        _params: ControlChangeParams,
    ) -> Result<ControlStatusResult, Refusal> {
        let by = Some(By::from(caller));
        let reason = PauseReason::Requested;
        self.ask(|reply| Command::Pause { by, reason, reply }).await
    }

    async fn resume(
        &self,
        caller: &Caller,
        _params: ControlChangeParams,
    ) -> Result<ControlStatusResult, Refusal> {
        let by = By::from(caller);
        self.ask(|reply| Command::Resume { by, reply }).await
    }

    async fn request(
        &self,
        caller: &Caller,
        params: ControlRequestParams,
    ) -> Result<ControlAcquireResult, Refusal> {
        let (params, wait_ms) = params.split();
        let wait_ms = wait_ms.unwrap_or(DEFAULT_REQUEST_WAIT_MS);
        if wait_ms > MAX_REQUEST_WAIT_MS {
            return Err(Refusal::new(
                ErrorCode::BadParams,
                format!("`waitMs` is {wait_ms}; give {MAX_REQUEST_WAIT_MS} milliseconds at most"),
            ));
        }
        let wait = std::time::Duration::from_millis(wait_ms);
        let asked = self.acquiring(caller, params, true);
        match tokio::time::timeout(wait, asked).await {
            Ok(outcome) => outcome,
            Err(_) => {
                self.tell(Command::Unask(ControllerId(caller.connection.0)))
                    .await;
                Err(Refusal::new(
                    ErrorCode::Timeout,
                    "the person in control has not answered; ask again later",
                ))
            }
        }
    }

    async fn give(
        &self,
        _caller: &Caller,
        params: LeaseParams,
    ) -> Result<ControlAnswerResult, Refusal> {
        self.answer_request(params, true).await
    }

    async fn refuse(
        &self,
        _caller: &Caller,
        params: LeaseParams,
    ) -> Result<ControlAnswerResult, Refusal> {
        self.answer_request(params, false).await
    }

    async fn permit(
        &self,
        caller: &Caller,
        params: ControlPermitParams,
    ) -> Result<ControlPermitResult, Refusal> {
        if params.what.is_empty() || params.what.len() > MAX_WHAT {
            return Err(Refusal::new(
                ErrorCode::BadParams,
                format!("`what` is to say in up to {MAX_WHAT} bytes what will be done"),
            ));
        }
        let by = By::from(caller);
        let owner = OwnerId(caller.connection.0);
        let (permit, epoch) = self
            .ask(|reply| Command::Permit {
                by,
                owner,
                what: params.what,
                reply,
            })
            .await?;
        Ok(ControlPermitResult {
            permit: permit.to_string().into(),
            epoch: epoch.0,
        })
    }

    async fn complete(
        &self,
        caller: &Caller,
        params: ControlCompleteParams,
    ) -> Result<ControlCompleteResult, Refusal> {
        let permit = terms::numbered(params.permit.as_str(), "p", 10).ok_or_else(|| {
            Refusal::new(
                ErrorCode::BadParams,
                "`permit` is no permit's name; give the one that `control.permit` answered",
            )
        })?;
        let by = Some(By::from(caller));
        let permit = PermitId(permit);
        self.ask(|reply| Command::Complete { permit, by, reply })
            .await?;
        Ok(ControlCompleteResult {})
    }

    async fn secret(
        &self,
        caller: &Caller,
        params: ControlSecretParams,
    ) -> Result<ControlSecretResult, Refusal> {
        let lease = match (&params.lease_id, &params.token) {
            (Some(lease), Some(token)) => Some(terms::proof(lease, token)?),
            _ => None,
        };
        let mut params = DesktopTypeParams {
            desktop: None,
            text: params.text,
            // A secret is not left where any program can read it, if the
            // keyboard has it.
            method: Some(TypeMethod::Keys),
        };
        let lacks = self.lacks(&params).await;
        if lacks.is_some() {
            params.method = None;
        }
        let mut action = action::type_text(&params, lacks)?;
        action.chars = None;
        action.fields = Map::new();
        let by = By::from(caller);
        let epoch = self
            .ask(|reply| Command::Secret {
                by,
                action,
                lease,
                reply,
            })
            .await?;
        Ok(ControlSecretResult { epoch })
    }

    async fn launch(
        &self,
        caller: &Caller,
        params: DesktopLaunchParams,
    ) -> Result<DesktopLaunchResult, Refusal> {
        let said = params.command.first().cloned().unwrap_or_default();
        let launched = self.launched(caller, params).await;
        let mut fields = Map::new();
        fields.insert("program".into(), said.into());
        let outcome = if launched.is_ok() { "done" } else { "refused" };
        if let Ok(result) = &launched {
            fields.insert("launched".into(), result.pid.into());
        }
        let refusal = launched.as_ref().err();
        self.record(caller, "desktop_launch", outcome, refusal, fields)
            .await;
        launched
    }

    async fn screenshot(
        &self,
        caller: &Caller,
        params: DesktopScreenshotParams,
    ) -> Result<DesktopScreenshotResult, Refusal> {
        let looked = self.looked(caller, &params).await;
        let mut fields = Map::new();
        if let Ok(DesktopScreenshotResult {
            path: Some(path), ..
        }) = &looked
        {
            fields.insert("screenshot".into(), path.as_str().into());
        }
        let outcome = if looked.is_ok() { "done" } else { "refused" };
        let refusal = looked.as_ref().err();
        self.record(caller, "desktop_screenshot", outcome, refusal, fields)
            .await;
        looked
    }

    async fn click(
        &self,
        caller: &Caller,
        params: DesktopClickParams,
    ) -> Result<ActionResult, Refusal> {
        let action = action::click(&params, 1, self.bounds());
        let action = self.checked(caller, "desktop_click", action).await?;
        self.act(caller, action).await
    }

    async fn move_to(
        &self,
        caller: &Caller,
        params: DesktopMoveParams,
    ) -> Result<ActionResult, Refusal> {
        let action = action::move_to(&params, self.bounds());
        let action = self.checked(caller, "desktop_move", action).await?;
        self.act(caller, action).await
    }

    async fn double_click(
        &self,
        caller: &Caller,
        params: DesktopClickParams,
    ) -> Result<ActionResult, Refusal> {
        let action = action::click(&params, 2, self.bounds());
        let action = self.checked(caller, "desktop_double_click", action).await?;
        self.act(caller, action).await
    }

    async fn scroll(
        &self,
        caller: &Caller,
        params: DesktopScrollParams,
    ) -> Result<ActionResult, Refusal> {
        let pointer = match &self.0.links.x11 {
            Some(x11) if params.x.is_none() => x11.pointer().await.ok(),
            _ => None,
        };
        let pointer = pointer.map_or((0, 0), |pointer| (pointer.x, pointer.y));
        let action = action::scroll(&params, pointer, self.bounds());
        let action = self.checked(caller, "desktop_scroll", action).await?;
        self.act(caller, action).await
    }

    async fn drag(
        &self,
        caller: &Caller,
        params: DesktopDragParams,
    ) -> Result<ActionResult, Refusal> {
        let action = action::drag(&params, self.bounds());
        let action = self.checked(caller, "desktop_drag", action).await?;
        self.act(caller, action).await
    }

    async fn type_text(
        &self,
        caller: &Caller,
        params: DesktopTypeParams,
    ) -> Result<ActionResult, Refusal> {
        let lacks = self.lacks(&params).await;
        let action = action::type_text(&params, lacks);
        let action = self.checked(caller, "desktop_type", action).await?;
        self.act(caller, action).await
    }

    async fn key(
        &self,
        caller: &Caller,
        params: DesktopKeyParams,
    ) -> Result<ActionResult, Refusal> {
        let action = self
            .checked(caller, "desktop_key", action::key(&params))
            .await?;
        self.act(caller, action).await
    }

    async fn windows(
        &self,
        caller: &Caller,
        _params: DesktopWindowsParams,
    ) -> Result<DesktopWindowsResult, Refusal> {
        self.look(By::from(caller)).await?;
        let Some(x11) = &self.0.links.x11 else {
            return Err(Refusal::new(
                ErrorCode::DisplayUnavailable,
                format!(
                    "desktop {} is attached to another server, whose windows cannot be listed; take a screenshot",
                    self.0.id
                ),
            ));
        };
        let windows = x11.windows().await.map_err(|error| {
            Refusal::new(
                ErrorCode::DisplayUnavailable,
                format!("no windows of desktop {}: {error}", self.0.id),
            )
        })?;
        Ok(DesktopWindowsResult { windows })
    }

    async fn open_view(
        &self,
        _caller: &Caller,
        _params: ViewOpenParams,
    ) -> Result<ViewOpenResult, Refusal> {
        let viewer = ViewerId(self.0.viewer_numbers.fetch_add(1, Ordering::Relaxed) + 1);
        let name = ViewerName::from(viewer.to_string());
        let path = (self.0.viewer_socket)(&name);
        // The desktop knows of it before anybody can connect to it.
        self.tell(Command::ViewerOpened(viewer)).await;
        if let Err(refusal) = self.0.viewers.open(viewer, path.clone()) {
            self.tell(Command::ViewerClosed(viewer)).await;
            return Err(refusal);
        }
        Ok(ViewOpenResult {
            viewer: name,
            socket_path: path.display().to_string(),
        })
    }
}

impl DesktopHandle {
    async fn launched(
        &self,
        caller: &Caller,
        params: DesktopLaunchParams,
    ) -> Result<DesktopLaunchResult, Refusal> {
        let Some(programs) = &self.0.programs else {
            return Err(Refusal::new(
                ErrorCode::BadParams,
                format!(
                    "desktop {} is attached to another server; start programs on that server's own machine or display",
                    self.0.id
                ),
            ));
        };
        let launch = programs.prepare(&params, self.0.links.x11.as_ref()).await?;
        let (permit, epoch) = self.host_permit(caller, "desktop.launch").await?;
        let launched = programs.launch(launch).await;
        self.host_complete(permit).await;
        let (pid, log) = launched?;
        let by = By::from(caller);
        Ok(DesktopLaunchResult {
            pid,
            log,
            epoch: epoch.0,
            hand_back: self.untold(by.observer).await,
        })
    }
}
