//! Each method of the wire that is about one desktop.

use handover_control::{ControllerId, GiveBack, PauseReason, PermitId, ViewerId};
use handover_protocol::{
    ActionResult, CdpOpenParams, CdpOpenResult, ControlAcquireParams, ControlAcquireResult,
    ControlAnswerResult, ControlChangeParams, ControlCompleteParams, ControlCompleteResult,
    ControlPermitParams, ControlPermitResult, ControlReclaimParams, ControlRenewResult,
    ControlRequestParams, ControlReturnParams, ControlReturnResult, ControlSecretParams,
    ControlSecretResult, ControlStatusResult, DesktopClickParams, DesktopDragParams, DesktopId,
    DesktopKeyParams, DesktopLaunchParams, DesktopLaunchResult, DesktopMoveParams,
    DesktopScreenshotParams, DesktopScreenshotResult, DesktopScrollParams, DesktopTypeParams,
    DesktopView, DesktopWindowsParams, DesktopWindowsResult, ErrorCode, LeaseParams, Method,
    RELAYED, Refusal, ReturnReason, TypeMethod, ViewOpenParams, ViewOpenResult,
};
use serde_json::{Map, json};
use tokio::sync::mpsc;

use super::action;
use super::by::By;
use super::command::Command;
use super::handle::DesktopHandle;
use super::survey;
use super::terms;
use crate::attach;
use crate::callers::{Caller, ConnectionId};

/// How long a person waits for the holder's answer if they do not say.
const DEFAULT_REQUEST_WAIT_MS: u64 = 60_000;

/// The longest that a person may wait for it.
const MAX_REQUEST_WAIT_MS: u64 = 600_000;

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
        let reclaimed = self
            .ask(|reply| Command::Reclaim {
                by,
                lease,
                token: params.token,
                viewer,
                reply,
            })
            .await?;
        Ok(ControlAcquireResult {
            foreign_clients: survey::foreign_clients(&self.0.links).await,
            ..reclaimed
        })
    }

    async fn give_back(
        &self,
        caller: &Caller,
        params: ControlReturnParams,
    ) -> Result<ControlReturnResult, Refusal> {
        terms::check_note(params.note.as_deref())?;
        let lease = terms::named(params.lease_id.as_ref(), params.token.as_ref())?;
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
        let by = Some(By::from(caller));
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
        self.0.links.relayed.want();
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
            return Err(Refusal::bad_param(
                "waitMs",
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
        let tool = params.what.strip_prefix(RELAYED).map(str::to_owned);
        let permitted = self.outside_permit(caller, params).await;
        if let Err(refusal) = &permitted {
            let (kind, said) = match tool {
                Some(tool) => ("relay_refused", json!({ "tool": tool })),
                None => (
                    "call_refused",
                    json!({ "method": Method::ControlPermit.name() }),
                ),
            };
            self.record(caller, kind, "refused", Some(refusal), action::fields(said))
                .await;
        }
        let (permit, epoch) = permitted?;
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
            Refusal::bad_param(
                "permit",
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
        let lease = terms::named(params.lease_id.as_ref(), params.token.as_ref())?;
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
        let place = self.place().await;
        let action = action::click(&params, 1, self.bounds());
        let said = json!({"x": params.x, "y": params.y});
        let action = self.checked(caller, "desktop_click", said, action).await?;
        self.act(caller, action, place).await
    }

    async fn move_to(
        &self,
        caller: &Caller,
        params: DesktopMoveParams,
    ) -> Result<ActionResult, Refusal> {
        let place = self.place().await;
        let action = action::move_to(&params, self.bounds());
        let said = json!({"x": params.x, "y": params.y});
        let action = self.checked(caller, "desktop_move", said, action).await?;
        self.act(caller, action, place).await
    }

    async fn double_click(
        &self,
        caller: &Caller,
        params: DesktopClickParams,
    ) -> Result<ActionResult, Refusal> {
        let place = self.place().await;
        let action = action::click(&params, 2, self.bounds());
        let said = json!({"x": params.x, "y": params.y});
        let action = self
            .checked(caller, "desktop_double_click", said, action)
            .await?;
        self.act(caller, action, place).await
    }

    async fn scroll(
        &self,
        caller: &Caller,
        params: DesktopScrollParams,
    ) -> Result<ActionResult, Refusal> {
        let place = self.place().await;
        let pointer = match &self.0.links.x11 {
            Some(x11) if params.x.is_none() => x11.pointer().await.ok(),
            _ => None,
        };
        let pointer = pointer.map_or((0, 0), |pointer| (pointer.x, pointer.y));
        let action = action::scroll(&params, pointer, self.bounds());
        let said = json!({"x": params.x, "y": params.y});
        let action = self.checked(caller, "desktop_scroll", said, action).await?;
        self.act(caller, action, place).await
    }

    async fn drag(
        &self,
        caller: &Caller,
        params: DesktopDragParams,
    ) -> Result<ActionResult, Refusal> {
        let place = self.place().await;
        let action = action::drag(&params, self.bounds());
        let said = json!({"x": params.from[0], "y": params.from[1]});
        let action = self.checked(caller, "desktop_drag", said, action).await?;
        self.act(caller, action, place).await
    }

    async fn type_text(
        &self,
        caller: &Caller,
        params: DesktopTypeParams,
    ) -> Result<ActionResult, Refusal> {
        let place = self.place().await;
        let lacks = self.lacks(&params).await;
        let action = action::type_text(&params, lacks);
        let said = json!({"chars": params.text.chars()});
        let action = self.checked(caller, "desktop_type", said, action).await?;
        self.act(caller, action, place).await
    }

    async fn key(
        &self,
        caller: &Caller,
        params: DesktopKeyParams,
    ) -> Result<ActionResult, Refusal> {
        let place = self.place().await;
        let lacks = self.lacks_key(&params).await;
        let action = action::key(&params, lacks);
        // A name that is no key's may be anything, so it is not recorded.
        let said = json!({});
        let action = self.checked(caller, "desktop_key", said, action).await?;
        self.act(caller, action, place).await
    }

    async fn windows(
        &self,
        caller: &Caller,
        _params: DesktopWindowsParams,
    ) -> Result<DesktopWindowsResult, Refusal> {
        self.seen_windows(caller).await
    }

    async fn open_view(
        &self,
        _caller: &Caller,
        _params: ViewOpenParams,
    ) -> Result<ViewOpenResult, Refusal> {
        self.opened_view().await
    }

    async fn open_cdp(
        &self,
        _caller: &Caller,
        _params: CdpOpenParams,
    ) -> Result<CdpOpenResult, Refusal> {
        Ok(CdpOpenResult {
            socket_path: self.opened_cdp()?.display().to_string(),
        })
    }
}
