//! Permits for parts of the host that act on a desktop by other ways than its display.

use handover_control::PermitId;
use handover_protocol::{DesktopId, ErrorCode, Refusal};
use serde_json::Map;
use tokio::sync::mpsc::WeakSender;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::acting::HOST;
use super::by::By;
use super::command::Command;
use super::requests::reply;
use super::view::ControlView;

/// Asks one desktop's arbiter, as long as the desktop is there.
#[derive(Debug, Clone)]
pub(crate) struct Permits {
    pub(super) desktop: DesktopId,
    pub(super) commands: WeakSender<Command>,
    pub(super) view: watch::Receiver<ControlView>,
}

impl Permits {
    /// The desktop.
    pub(crate) fn desktop(&self) -> &DesktopId {
        &self.desktop
    }

    /// Who has control, as it changes. Whoever holds a permit follows this: no control is granted before
    /// the permit is complete.
    pub(crate) fn control(&self) -> watch::Receiver<ControlView> {
        self.view.clone()
    }

    /// A permit for one act.
    ///
    /// # Errors
    /// As for every act on the desktop.
    pub(crate) async fn permit(&self, by: &By, what: &str) -> Result<PermitId, Refusal> {
        let (answer, answered) = reply();
        self.tell(Command::Permit {
            by: by.clone(),
            owner: HOST,
            keeper: None,
            watching: JoinSet::new(),
            what: what.to_owned(),
            reply: answer,
        })
        .await;
        let (permit, _epoch) = answered.await.map_err(|_| self.gone())??;
        Ok(permit)
    }

    /// The act is over.
    pub(crate) async fn complete(&self, permit: PermitId) {
        let (reply, _unread) = oneshot::channel();
        self.tell(Command::Complete {
            permit,
            by: None,
            reply,
        })
        .await;
    }

    /// Keeps in the record that an act by `tool` was refused with `code`.
    pub(crate) async fn record_refusal(&self, by: &By, tool: &str, code: ErrorCode) {
        let mut fields = Map::new();
        fields.insert("tool".into(), tool.into());
        fields.insert("code".into(), code.as_str().into());
        self.tell(Command::Record {
            kind: "relay_refused",
            by: by.clone(),
            fields,
        })
        .await;
    }

    async fn tell(&self, command: Command) {
        // A desktop that has ended needs to know nothing, and admits nothing.
        if let Some(commands) = self.commands.upgrade() {
            let _ = commands.send(command).await;
        }
    }

    fn gone(&self) -> Refusal {
        Refusal::new(
            ErrorCode::DesktopGone,
            format!("desktop {} has ended; make a new one", self.desktop),
        )
    }
}
