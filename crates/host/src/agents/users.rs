//! Which agents use which desktop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use handover_protocol::{AgentId, DesktopId};

/// The running agents and the desktops that they were given or have acted on.
#[derive(Debug, Default)]
pub struct Users(Mutex<BTreeMap<AgentId, BTreeSet<DesktopId>>>);

impl Users {
    /// An agent's program is being started, with this desktop if with any.
    pub fn began(&self, agent: &AgentId, desktop: Option<&DesktopId>) {
        let desktops = desktop.cloned().into_iter().collect();
        self.table().insert(agent.clone(), desktops);
    }

    /// An agent has acted on a desktop or looked at it. Of agents that do not run nothing is kept.
    pub fn used(&self, agent: &AgentId, desktop: &DesktopId) {
        if let Some(desktops) = self.table().get_mut(agent)
            && !desktops.contains(desktop)
        {
            desktops.insert(desktop.clone());
        }
    }

    /// An agent's processes have ended.
    pub fn ended(&self, agent: &AgentId) {
        self.table().remove(agent);
    }

    /// A desktop has ended.
    pub fn gone(&self, desktop: &DesktopId) {
        for desktops in self.table().values_mut() {
            desktops.remove(desktop);
        }
    }

    /// The agents that use a desktop.
    pub fn of(&self, desktop: &DesktopId) -> Vec<AgentId> {
        self.table()
            .iter()
            .filter(|(_, desktops)| desktops.contains(desktop))
            .map(|(agent, _)| agent.clone())
            .collect()
    }

    /// The desktops that an agent uses.
    pub fn desktops(&self, agent: &AgentId) -> Vec<DesktopId> {
        let table = self.table();
        let desktops = table.get(agent).into_iter().flatten();
        desktops.cloned().collect()
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<AgentId, BTreeSet<DesktopId>>> {
        // Nothing panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_or_used_until_either_ends() {
        let users = Users::default();
        let (a, b) = (AgentId::from("aaaaaa"), AgentId::from("bbbbbb"));
        let (d1, d2) = (DesktopId::from("d1"), DesktopId::from("d2"));
        users.began(&a, Some(&d1));
        users.began(&b, None);
        users.used(&b, &d1);
        users.used(&b, &d2);
        users.used(&AgentId::from("cccccc"), &d1);
        assert_eq!(users.of(&d1), [a.clone(), b.clone()]);
        assert_eq!(users.desktops(&b), [d1.clone(), d2.clone()]);
        users.gone(&d2);
        assert!(users.of(&d2).is_empty());
        users.ended(&a);
        assert_eq!(users.of(&d1), [b]);
    }
}
