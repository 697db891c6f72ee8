//! Looking at a desktop: pictures, windows, viewers.

use std::sync::atomic::Ordering;

use base64::Engine;
use handover_control::{PauseReason, ViewerId};
use handover_protocol::{
    ControlStatusResult, DesktopKeyParams, DesktopScreenshotParams, DesktopScreenshotResult,
    DesktopTypeParams, DesktopWindowsResult, ErrorCode, Refusal, TypeMethod, ViewOpenResult,
    ViewerName,
};
use handover_rfb::keys::Keysym;
use handover_rfb::typing::KEYS_LIMIT;

use super::action::{self, Lacking};
use super::by::By;
use super::command::{Command, Look};
use super::handle::DesktopHandle;
use super::{refuse, survey};
use crate::callers::Caller;
use crate::display::x11::CALL_WITHIN;
use crate::display::{Additions, CaptureError};

impl DesktopHandle {
    /// May this caller look now?
    async fn look(&self, by: By) -> Result<Look, Refusal> {
        self.ask(|reply| Command::Look { by, reply }).await
    }

    /// `desktop.screenshot`, not on record yet.
    pub(super) async fn looked(
        &self,
        caller: &Caller,
        params: &DesktopScreenshotParams,
    ) -> Result<DesktopScreenshotResult, Refusal> {
        let by = By::from(caller);
        let observer = by.observer.clone();
        let look = self.look(by.clone()).await?;
        let picture = self.0.links.screen.capture().await;
        // Control may have moved while the picture was on its way: a person may
        // be in control by now, or not want to be watched.
        let since = self.look(by).await?;
        let seen = matches!(picture, Ok(_) | Err(CaptureError::AllBlack { .. }));
        if seen && since.epoch == look.epoch {
            let (observer, epoch) = (observer.clone(), look.epoch);
            self.tell(Command::Looked { observer, epoch }).await;
        }
        let picture = picture.map_err(|error| {
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
        let path = if look.human || since.human || since.epoch != look.epoch {
            None
        } else {
            let kept = self.0.links.store.put_evidence(picture.png.to_vec(), "png");
            Some(
                kept.await
                    .map_err(|error| crate::record::not_recorded(&error))?
                    .path,
            )
        };
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

    /// `desktop.windows`.
    pub(super) async fn seen_windows(
        &self,
        caller: &Caller,
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

    /// `view.open`.
    ///
    /// # Errors
    /// `desktop_gone`; `queue_full` when too many are open.
    pub(super) async fn opened_view(&self) -> Result<ViewOpenResult, Refusal> {
        // What has ended has nothing to show, and never will.
        let status: ControlStatusResult = self.ask(Command::Status).await?;
        if status.pause_reason == Some(handover_protocol::PauseReason::DesktopGone) {
            return Err(refuse::paused(&self.0.id, PauseReason::DesktopGone));
        }
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

    /// The first character that the display's keyboard has no key for. Texts
    /// that are pasted anyway are not looked at.
    pub(super) async fn lacks(&self, params: &DesktopTypeParams) -> Option<Lacking> {
        let x11 = self.0.links.x11.as_ref()?;
        let pasted = params.method == Some(TypeMethod::Paste) || params.text.chars() > KEYS_LIMIT;
        if pasted && params.method != Some(TypeMethod::Keys) {
            return None;
        }
        // A display that does not answer for so long will not take keys either,
        // and says so then. One that is slow is waited for: what it has no key
        // for it would drop in silence.
        let additions = match params.method {
            Some(TypeMethod::Keys) => Additions::Allowed,
            _ => Additions::Refused,
        };
        let text = params.text.expose();
        let lacking = survey::within(CALL_WITHIN, x11.untypable(text, additions)).await??;
        Some(Lacking {
            index: lacking.index,
            character: lacking.character,
        })
    }

    /// The first key of a chord that the display would drop in silence.
    pub(super) async fn lacks_key(&self, params: &DesktopKeyParams) -> Option<Keysym> {
        let x11 = self.0.links.x11.as_ref()?;
        let keys = action::chord(params).ok()?;
        survey::within(CALL_WITHIN, x11.unpressable(keys)).await?
    }
}
