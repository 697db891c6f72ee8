//! Tells agents the news, in their own context where their driver can.
//!
//! An agent that cannot be told learns of a takeover when it next asks about the desktop or acts on it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use handover_agents::Manager;
use handover_control::{Control, Phase};
use handover_protocol::{AgentId, AgentStatus, DesktopId};
use tokio::sync::mpsc;

use super::news::News;
use super::words;
use crate::attach::Desktop;
use crate::desktop::DesktopHandle;
use crate::desktops::DesktopSet;
use crate::requests::Requests;

/// What agents are told begins so, as all that the host says to them by itself.
const HOST: &str = "[handover] ";

/// Tells the news until nobody brings any more.
pub async fn tell(
    manager: Manager,
    desktops: Weak<DesktopSet>,
    requests: Arc<Requests>,
    mut news: mpsc::Receiver<News>,
) {
    let mut teller = Teller {
        manager,
        desktops,
        requests,
        paused: HashMap::new(),
    };
    while let Some(news) = news.recv().await {
        teller.tell(news);
        // What they waited for may have come, or never will.
        teller.manager.reconsider();
    }
}

struct Teller {
    manager: Manager,
    desktops: Weak<DesktopSet>,
    requests: Arc<Requests>,
    /// The desktops that were paused when last looked at.
    paused: HashMap<DesktopId, bool>,
}

impl Teller {
    fn tell(&mut self, news: News) {
        match news {
            News::Taken {
                desktop,
                holder,
                at,
            } => self.taken(&desktop, &words::taken(&desktop, &holder, at)),
            News::HandedBack {
                desktop,
                hand_back,
                requests,
                agents,
            } => {
                let paused = self
                    .control(&desktop)
                    .is_some_and(|(control, _)| control == Control::Paused);
                self.all(&agents, &words::handed_back(&desktop, &hand_back, paused));
                self.requests.told(&requests);
            }
            News::Changed(desktop) => self.changed(&desktop),
            News::Gone { desktop, agents } => {
                self.paused.remove(&desktop);
                self.all(&agents, &words::gone(&desktop));
            }
            News::Answered {
                agent,
                request,
                text,
            } => {
                self.one(&agent, &words::answered(&request, &text));
                self.requests.told(&[request.request_id]);
            }
            News::Cancelled { agent, request } => {
                self.one(&agent, &words::cancelled(&request));
                self.requests.told(&[request.request_id]);
            }
        }
    }

    /// Who works is told. Who waits would begin a turn in which nothing can be done there, and is told
    /// at the return.
    fn taken(&self, desktop: &DesktopId, text: &str) {
        for user in self.manager.users_of(desktop) {
            if matches!(user.status, AgentStatus::Starting | AgentStatus::Running) {
                self.one(&user.id, text);
            }
        }
    }

    /// Nothing but the end of a pause is told here: takeovers have their own news.
    fn changed(&mut self, desktop: &DesktopId) {
        let Some((control, phase)) = self.control(desktop) else {
            return;
        };
        let was_paused = self
            .paused
            .insert(desktop.clone(), control == Control::Paused);
        if was_paused == Some(true) && (control, phase) == (Control::Agent, Phase::Steady) {
            for user in self.manager.users_of(desktop) {
                self.one(&user.id, &words::resumed(desktop));
            }
        }
    }

    fn all(&self, agents: &[AgentId], text: &str) {
        for agent in agents {
            self.one(agent, text);
        }
    }

    fn one(&self, agent: &AgentId, text: &str) {
        self.manager.tell(agent, &format!("{HOST}{text}"));
    }

    fn control(&self, desktop: &DesktopId) -> Option<(Control, Phase)> {
        let desktops: Arc<DesktopSet> = self.desktops.upgrade()?;
        let all: Vec<DesktopHandle> = desktops.all();
        let found = all.iter().find(|known| known.id() == desktop)?;
        let control = found.control();
        let view = control.borrow();
        Some((view.control, view.phase))
    }
}
