//! The session that the attach socket serves.

use std::sync::{Arc, Weak};
use std::time::Duration;

use handover_control::Moment;
use handover_protocol::{
    Control, DesktopDestroyResult, DesktopId, DesktopNewParams, DesktopNewResult, HandBack,
    ManifestDesktop, Refusal, RequestId, RequestView, SessionId,
};
use handover_store::NewEvent;
use tokio::sync::watch;

use crate::attach::{self, Desktop};
use crate::callers::{Caller, Callers, ConnectionId};
use crate::desktop::{DesktopHandle, Hooks};
use crate::desktops::DesktopSet;
use crate::manifest::ManifestWriter;
use crate::requests::Requests;
use crate::system::creds::Sender;

/// The parts of a session, behind its socket.
pub struct Served {
    pub(crate) id: SessionId,
    pub(crate) callers: Arc<Callers>,
    pub(crate) desktops: Arc<DesktopSet>,
    pub(crate) store: handover_store::Store,
    /// Set to true when somebody asks for the end.
    pub(crate) stop: watch::Sender<Option<Caller>>,
}

impl Served {
    fn recorded(
        &self,
        caller: &Caller,
        kind: &'static str,
        desktop: Option<&DesktopId>,
        refusal: Option<&Refusal>,
    ) {
        let event: NewEvent = caller.event(kind);
        let event = match desktop {
            Some(desktop) => event.desktop(desktop.as_str()),
            None => event,
        };
        let outcome = if refusal.is_none() { "done" } else { "refused" };
        self.store.append_soon(
            event
                .field("outcome", outcome)
                .field_if("code", refusal.map(|refusal| refusal.code.as_str())),
        );
    }
}

impl attach::Session for Served {
    type Desktop = DesktopHandle;

    fn id(&self) -> SessionId {
        self.id.clone()
    }

    fn identify(
        &self,
        sender: Sender,
        connection: ConnectionId,
        accepted: Moment,
    ) -> Result<Caller, Refusal> {
        self.callers.identify(sender, connection, accepted)
    }

    async fn confirm(&self, caller: &Caller, act: &str, wait: Duration) -> Result<(), Refusal> {
        self.callers.confirm(caller, act, wait).await
    }

    fn desktops(&self) -> Vec<DesktopHandle> {
        self.desktops.all()
    }

    async fn new_desktop(
        &self,
        caller: &Caller,
        params: DesktopNewParams,
    ) -> Result<DesktopNewResult, Refusal> {
        let made = self.desktops.new_desktop(caller, params).await;
        let id = made.as_ref().ok().map(|made| made.id.clone());
        self.recorded(caller, "desktop_new", id.as_ref(), made.as_ref().err());
        made
    }

    async fn destroy_desktop(
        &self,
        caller: &Caller,
        desktop: DesktopHandle,
    ) -> Result<DesktopDestroyResult, Refusal> {
        let id = desktop.id().clone();
        let destroyed = self.desktops.destroy(caller, &desktop).await;
        let refusal = destroyed.as_ref().err();
        self.recorded(caller, "desktop_destroy", Some(&id), refusal);
        destroyed.map(|()| DesktopDestroyResult { id })
    }

    async fn stop(&self, caller: &Caller) -> Result<(), Refusal> {
        self.stop.send_replace(Some(caller.clone()));
        Ok(())
    }
}

/// What desktops tell the rest of the host.
pub struct News {
    pub(crate) requests: Arc<Requests>,
    /// Told of what changed; the manifest follows.
    pub(crate) changes: watch::Sender<u64>,
}

impl Hooks for News {
    fn changed(&self, _desktop: &DesktopId) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn gone(&self, desktop: &DesktopId) {
        self.requests.cancel(desktop);
    }

    fn taken(&self, desktop: &DesktopId) {
        self.requests.taken(desktop);
    }

    fn handed_back(&self, desktop: &DesktopId, hand_back: &HandBack) -> Vec<RequestId> {
        self.requests.handed_back(desktop, hand_back)
    }

    fn requests(&self, desktop: &DesktopId) -> Vec<RequestView> {
        self.requests.open_requests(Some(desktop))
    }
}

/// Keeps the manifest's list of desktops true until the desktops are gone.
pub async fn follow_desktops(
    desktops: Weak<DesktopSet>,
    manifest: ManifestWriter,
    mut changes: watch::Receiver<u64>,
) {
    while changes.changed().await.is_ok() {
        let Some(desktops) = desktops.upgrade() else {
            return;
        };
        let listed: Vec<_> = desktops
            .all()
            .iter()
            .map(|desktop| ManifestDesktop {
                id: desktop.id().clone(),
                control: match desktop.control().borrow().control {
                    handover_control::Control::Agent => Control::Agent,
                    handover_control::Control::Human => Control::Human,
                    handover_control::Control::Paused => Control::Paused,
                },
            })
            .collect();
        manifest.update(|manifest| manifest.desktops = listed);
    }
}
