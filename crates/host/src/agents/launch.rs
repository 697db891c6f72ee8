//! Starting an agent's program.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use handover_agents::environment::{Start, Started};
use handover_protocol::AgentId;

use super::environment::Parts;
use super::leftovers;
use super::tree::AgentTree;
use crate::attach::Desktop;
use crate::callers::is_mark;
use crate::desktop::DesktopHandle;
use crate::keeper::Owner;
use crate::keeper::client::{Keeper, KeeperOptions};
use crate::keeper::pipes::Pipes;
use crate::keeper::wire::{Launch, MARKER};
use crate::xvnc::NOT_FOR_PROGRAMS;

/// Time between TERM and KILL for a program that was not started whole.
const END_GRACE: Duration = Duration::from_millis(200);

/// Starts the program of an agent below a keeper of its own. The error is for people.
pub(super) async fn start(parts: Arc<Parts>, id: AgentId, start: Start) -> Result<Started, String> {
    let desktop = match (&start.desktop, start.display) {
        (Some(desktop), true) => {
            let mut all = parts.desktops().into_iter();
            let found = all.find(|known| known.id() == desktop);
            Some(found.ok_or_else(|| format!("desktop {desktop} has ended"))?)
        }
        _ => None,
    };
    let launch = Launch {
        command: start.program.argv.clone(),
        env: environment(&parts.session, &id, &start, desktop.as_ref())?,
        cwd: start.cwd,
        log: parts.paths.agent_log(&id),
        stdio: None,
        channel: None,
    };
    let pipes = Pipes::make(&parts.paths.runtime_dir).map_err(|error| error.to_string())?;
    let options = KeeperOptions {
        session: parts.session.clone(),
        owner: Owner::Agent(id.to_string()),
        socket: parts.paths.agent_keeper_socket(&id),
        log: parts.paths.agent_keepers_log(),
        // An agent ends with its host.
        orphan_timeout: Duration::ZERO,
    };
    let (keeper, events) = Keeper::start(&parts.keeper, &options)
        .await
        .map_err(|error| error.to_string())?;
    let process = keeper.process();
    if let Err(error) = leftovers::keep(&parts.store, &id, process).await {
        keeper.end(END_GRACE).await;
        return Err(error.to_string());
    }
    parts.callers.agent_started(process, id.clone());
    match keeper.launch_piped(&launch, pipes).await {
        Ok((program, piped)) => {
            let (tree, exited) = AgentTree::follow(id, parts, keeper, program.pid, events);
            Ok(Started {
                stdin: Box::new(piped.stdin),
                stdout: Box::new(piped.stdout),
                stderr: Box::new(piped.stderr),
                exited,
                tree: Box::new(tree),
            })
        }
        Err(error) => {
            keeper.end(END_GRACE).await;
            parts.callers.agent_ended(process);
            leftovers::forget(&parts.store, &id);
            Err(error.to_string())
        }
    }
}

/// The whole environment of an agent's program.
fn environment(
    session: &str,
    id: &AgentId,
    start: &Start,
    desktop: Option<&DesktopHandle>,
) -> Result<BTreeMap<String, String>, String> {
    let own = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let base = compose(own, &start.program.env, &start.env);
    let given = [&start.program.env, &start.env];
    let is_given = |name: &str| given.iter().any(|env| env.contains_key(name));
    let mut env = match desktop {
        None => base,
        Some(desktop) => desktop
            .programs()
            .map(|programs| programs.environment(base, is_given))
            .ok_or_else(|| {
                format!(
                    "desktop {} is attached to another server, whose display programs cannot be given",
                    desktop.id()
                )
            })?,
    };
    env.insert("HANDOVER_SESSION".to_owned(), session.to_owned());
    env.insert("HANDOVER_AGENT".to_owned(), id.to_string());
    Ok(env)
}

/// The host's own environment, that of the driver, and what was asked for, without all that leads to a
/// display: that is given apart, or not at all. If the host was itself started from within an agent
/// program, what that has set is left out: some refuse to start within each other.
fn compose(
    own: impl Iterator<Item = (String, String)>,
    driver: &BTreeMap<String, String>,
    asked: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = own.filter(|(name, _)| !is_mark(name)).collect();
    for (name, value) in driver.iter().chain(asked) {
        env.insert(name.clone(), value.clone());
    }
    env.retain(|name, _| {
        let leads_to_display = matches!(name.as_str(), "DISPLAY" | "XAUTHORITY")
            || name.starts_with("WAYLAND_")
            || NOT_FOR_PROGRAMS.contains(&name.as_str());
        !leads_to_display && name != MARKER
    });
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn an_agent_has_the_hosts_environment_but_no_display() {
        let own = map(&[
            ("PATH", "/bin"),
            ("DISPLAY", ":0"),
            ("XAUTHORITY", "/x"),
            ("WAYLAND_DISPLAY", "wayland-0"),
            ("WAYLAND_DEBUG", "1"),
            ("HANDOVER_KEEPER", "1:2"),
            ("CLAUDECODE", "1"),
            ("LANG", "C"),
        ]);
        let driver = map(&[("LANG", "de_DE.UTF-8"), ("MODE", "rpc")]);
        let asked = map(&[("MODE", "mine"), ("DISPLAY", ":7")]);
        assert_eq!(
            compose(own.into_iter(), &driver, &asked),
            map(&[("PATH", "/bin"), ("LANG", "de_DE.UTF-8"), ("MODE", "mine")])
        );
    }
}
