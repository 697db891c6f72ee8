//! Who stands below whom among the agents of a session, and which of them have ended.

use std::collections::{HashMap, HashSet};

use handover_protocol::{AgentId, AgentView};

/// Steps down that a tree shows; what is deeper is shown at this depth.
const DEEPEST: usize = 16;

/// One agent of a tree, with the lines that join it to its parent.
#[derive(Debug)]
pub struct Branch<'a> {
    /// The lines before its name, such as `│  └─ `; empty for a root.
    pub lines: String,
    /// The agent.
    pub agent: &'a AgentView,
}

/// Every agent once, each behind its parent, siblings in their order. An agent whose parent is not
/// there is a root.
pub fn tree(agents: &[AgentView]) -> Vec<Branch<'_>> {
    let known: HashSet<&AgentId> = agents.iter().map(|agent| &agent.id).collect();
    let parent = |agent: &AgentView| {
        let parent = agent.parent.clone().filter(|parent| *parent != agent.id);
        parent.filter(|parent| known.contains(parent))
    };
    let mut children: HashMap<AgentId, Vec<&AgentView>> = HashMap::new();
    let mut roots = Vec::new();
    for agent in agents {
        match parent(agent) {
            Some(parent) => children.entry(parent).or_default().push(agent),
            None => roots.push(agent),
        }
    }
    let mut found = Vec::with_capacity(agents.len());
    let mut seen = HashSet::new();
    // Agents that name each other as parents have no root: each of them is tried at the end.
    for root in roots.into_iter().chain(agents) {
        // An agent, the lines before it, and those before its children.
        let mut waiting = vec![(root, String::new(), String::new(), 0)];
        while let Some((agent, lines, below, depth)) = waiting.pop() {
            if !seen.insert(&agent.id) {
                continue;
            }
            found.push(Branch { lines, agent });
            let children = children.get(&agent.id).map_or(&[][..], Vec::as_slice);
            for (index, child) in children.iter().enumerate().rev() {
                let last = index + 1 == children.len();
                let (joint, bar) = if last {
                    ("└─ ", "   ")
                } else {
                    ("├─ ", "│  ")
                };
                let next = if depth < DEEPEST {
                    format!("{below}{bar}")
                } else {
                    below.clone()
                };
                waiting.push((child, format!("{below}{joint}"), next, depth + 1));
            }
        }
    }
    found
}

/// The agents below `roots`, parents before their children; the roots themselves are not among them.
pub fn below<'a>(agents: &'a [AgentView], roots: &[AgentId]) -> Vec<&'a AgentView> {
    let mut inside: HashSet<&AgentId> = roots.iter().collect();
    let mut found = Vec::new();
    for branch in tree(agents) {
        let agent = branch.agent;
        let parent = agent.parent.as_ref();
        if parent.is_some_and(|parent| inside.contains(parent)) && inside.insert(&agent.id) {
            found.push(agent);
        }
    }
    found
}

/// The agents that have not ended, the newest `most` of those that have, and all that stand above them.
/// `agents` are the oldest first.
pub fn newest(agents: &[AgentView], most: usize) -> Vec<AgentView> {
    let parents: HashMap<&AgentId, Option<&AgentId>> = agents
        .iter()
        .map(|agent| (&agent.id, agent.parent.as_ref()))
        .collect();
    let mut kept = HashSet::new();
    let mut over = 0;
    for agent in agents.iter().rev() {
        if agent.status.has_ended() {
            over += 1;
            if over > most {
                continue;
            }
        }
        // Up to the root, or to where that was done before.
        let mut next = Some(&agent.id);
        while let Some(id) = next.filter(|id| kept.insert(*id)) {
            next = parents.get(id).copied().flatten();
        }
    }
    let kept = agents.iter().filter(|agent| kept.contains(&agent.id));
    kept.cloned().collect()
}

#[cfg(test)]
pub mod tests {
    use handover_protocol::AgentStatus;
    use serde_json::json;

    use super::*;

    /// A running agent for tests.
    pub fn agent(id: &str, parent: Option<&str>) -> AgentView {
        serde_json::from_value(json!({
            "id": id, "name": id, "type": "command", "status": "running", "parent": parent,
            "depth": 0, "task": "t", "startedAt": null, "outputFile": null, "pending": 0,
        }))
        .unwrap()
    }

    #[test]
    fn children_follow_their_parents() {
        let agents = [
            agent("a", None),
            agent("b", None),
            agent("a1", Some("a")),
            agent("a2", Some("a")),
            agent("a11", Some("a1")),
            agent("orphan", Some("gone")),
            agent("b1", Some("b")),
        ];
        let shown: Vec<String> = tree(&agents)
            .iter()
            .map(|branch| format!("{}{}", branch.lines, branch.agent.id))
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        a
        ├─ a1
        │  └─ a11
        └─ a2
        b
        └─ b1
        orphan
        ");
        let ids = |roots: &[&str]| {
            let roots: Vec<AgentId> = roots.iter().map(|&id| id.into()).collect();
            let found = below(&agents, &roots);
            found
                .iter()
                .map(|agent| agent.id.0.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(&["a"]), ["a1", "a11", "a2"]);
        assert_eq!(ids(&["a11"]), [""; 0]);
        // A parent that is not in the list has children all the same.
        assert_eq!(ids(&["gone", "b"]), ["b1", "orphan"]);
    }

    #[test]
    fn what_has_ended_long_ago_is_left_out() {
        let done = |id: &str, parent: Option<&str>| AgentView {
            status: AgentStatus::Done,
            ..agent(id, parent)
        };
        let agents = [
            done("old", None),
            done("parent", None),
            agent("child", Some("parent")),
            done("older", None),
            done("new", Some("old")),
            done("newest", None),
        ];
        let ids = |most| {
            let kept = newest(&agents, most).into_iter();
            kept.map(|agent| agent.id.0).collect::<Vec<_>>()
        };
        assert_eq!(ids(0), ["parent", "child"]);
        assert_eq!(ids(1), ["parent", "child", "newest"]);
        assert_eq!(ids(2), ["old", "parent", "child", "new", "newest"]);
        assert_eq!(ids(usize::MAX).len(), agents.len());
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let agents = [
            agent("a", Some("b")),
            agent("b", Some("a")),
            agent("c", Some("c")),
        ];
        let mut shown: Vec<&str> = tree(&agents).iter().map(|b| b.agent.id.as_str()).collect();
        shown.sort_unstable();
        assert_eq!(shown, ["a", "b", "c"]);
        assert_eq!(below(&agents, &["a".into()]).len(), 1);
    }

    #[test]
    fn a_long_chain_stays_narrow() {
        let mut agents = vec![agent("0", None)];
        for depth in 1..1000 {
            agents.push(agent(&depth.to_string(), Some(&(depth - 1).to_string())));
        }
        let shown = tree(&agents);
        assert_eq!(shown.len(), 1000);
        assert!(
            shown
                .iter()
                .all(|branch| branch.lines.chars().count() <= 60)
        );
    }
}
