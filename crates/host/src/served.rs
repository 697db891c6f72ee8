//! The session that the attach socket serves.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use handover_agents::Manager;
use handover_control::Moment;
use handover_protocol::{
    AgentId, AgentStatus, Control, DesktopDestroyResult, DesktopId, DesktopNewParams,
    DesktopNewResult, HandBack, LeaseWarning, ManifestAgent, ManifestDesktop, Refusal, RequestView,
    SessionId,
};
use handover_store::NewEvent;
use tokio::sync::watch;

use crate::agents::{Agents, News, Newsroom};
use crate::attach::{self, Desktop};
use crate::callers::{Caller, Callers, ConnectionId};
use crate::desktop::{DesktopHandle, HandedBack, Hooks};
use crate::desktops::DesktopSet;
use crate::manifest::ManifestWriter;
use crate::notices::{About, Notices};
use crate::requests::Requests;
use crate::system::clock;
use crate::system::creds::Sender;

/// The parts of a session, behind its socket.
pub struct Served {
    pub(crate) id: SessionId,
    pub(crate) callers: Arc<Callers>,
    pub(crate) desktops: Arc<DesktopSet>,
    pub(crate) agents: Agents,
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
    type Agents = Agents;

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

    fn agents(&self) -> &Agents {
        &self.agents
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

/// Hears what desktops tell, and passes it on to who it concerns.
pub struct Listening {
    pub(crate) requests: Arc<Requests>,
    /// The agents, as soon as there may be any.
    pub(crate) agents: Arc<OnceLock<Manager>>,
    /// Where agents get their news.
    pub(crate) newsroom: Newsroom,
    /// Where people get theirs, if they do.
    pub(crate) notices: Option<Notices>,
    /// Told of what changed; the manifest follows.
    pub(crate) changes: watch::Sender<u64>,
}

impl Listening {
    /// The agents that use a desktop; those that wait for their turn do not yet.
    fn users(&self, desktop: &DesktopId) -> Vec<AgentId> {
        let users = self.agents.get().map(|agents| agents.users_of(desktop));
        let users = users.unwrap_or_default().into_iter();
        users
            .filter(|user| user.status != AgentStatus::Queued)
            .map(|user| user.id)
            .collect()
    }
}

impl Hooks for Listening {
    fn changed(&self, desktop: &DesktopId) {
        self.changes.send_modify(|count| *count += 1);
        self.newsroom.bring(News::Changed(desktop.clone()));
    }

    fn gone(&self, desktop: &DesktopId) {
        self.requests.cancel(desktop);
        let agents = self.users(desktop);
        self.newsroom.bring(News::Gone {
            desktop: desktop.clone(),
            agents,
        });
    }

    fn taken(&self, desktop: &DesktopId, holder: &str) {
        self.requests.taken(desktop);
        self.newsroom.bring(News::Taken {
            desktop: desktop.clone(),
            holder: holder.to_owned(),
            at: clock::wall(),
        });
    }

    fn handed_back(&self, desktop: &DesktopId, hand_back: &HandBack) -> HandedBack {
        let told = HandedBack {
            requests: self.requests.handed_back(desktop, hand_back),
            agents: self.users(desktop),
        };
        let brought = self.newsroom.bring(News::HandedBack {
            desktop: desktop.clone(),
            hand_back: hand_back.clone(),
            requests: told.requests.clone(),
            agents: told.agents.clone(),
        });
        if !brought {
            self.requests.told(&told.requests);
        }
        told
    }

    fn ending(&self, desktop: &DesktopId, holder: &str, warning: &LeaseWarning) {
        if let Some(notices) = &self.notices {
            notices.give(About::LeaseWarning {
                desktop: desktop.clone(),
                holder: holder.to_owned(),
                limit: warning.limit,
                left_ms: warning.left_ms,
            });
        }
    }

    fn requests(&self, desktop: &DesktopId) -> Vec<RequestView> {
        self.requests.open_requests(Some(desktop))
    }
}

/// How long changes are gathered before the manifest's lists are made anew.
const GATHER: Duration = Duration::from_millis(50);

/// Keeps the manifest's lists of desktops and agents true until the desktops are gone.
pub async fn follow(
    desktops: Weak<DesktopSet>,
    agents: Manager,
    manifest: ManifestWriter,
    mut changes: watch::Receiver<u64>,
) {
    // What there is already has made its news before anybody listened.
    changes.mark_changed();
    while changes.changed().await.is_ok() {
        let Some(desktops) = desktops.upgrade() else {
            return;
        };
        list_in(&manifest, &desktops, &agents);
        drop(desktops);
        // The file is not written more often, and a burst of changes is one list.
        tokio::time::sleep(GATHER).await;
    }
}

/// Lists the desktops and agents as they stand.
pub fn list_in(manifest: &ManifestWriter, desktops: &DesktopSet, agents: &Manager) {
    let listed_desktops: Vec<_> = desktops.all().iter().map(listed_desktop).collect();
    let listed_agents: Vec<_> = agents.list().into_iter().map(ManifestAgent::from).collect();
    manifest.update(|manifest| {
        manifest.desktops = listed_desktops;
        manifest.agents = listed_agents;
    });
}

fn listed_desktop(desktop: &DesktopHandle) -> ManifestDesktop {
    ManifestDesktop {
        id: desktop.id().clone(),
        control: match desktop.control().borrow().control {
            handover_control::Control::Agent => Control::Agent,
            handover_control::Control::Human => Control::Human,
            handover_control::Control::Paused => Control::Paused,
        },
    }
}
