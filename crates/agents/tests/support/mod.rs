//! A manager with a record in memory and real processes, and an agent program whose protocol is
//! simple enough to see through.
#![allow(dead_code, reason = "each test file uses its part")]

mod toy;
mod world;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use handover_agents::driver::Create;
use handover_agents::{By, Limits, Manager, Settings};
use handover_protocol::{
    Actor, AgentId, AgentStatus, Refusal, ResultParams, ResultResult, Source, SpawnCaller,
    SpawnParams, SteerParams, SteerResult, SteerState,
};

pub use toy::create;
pub use world::World;

/// So long is waited for what must happen.
const LONG: Duration = Duration::from_secs(30);

/// A manager that runs `running` agents at once.
pub async fn manager(world: &Arc<World>, running: usize) -> Manager {
    let settings = Settings {
        limits: Limits::new(running),
        project_dir: world.dir().to_owned(),
        tools: None,
        drivers: create as Create,
    };
    Manager::open(world.clone(), settings).await.unwrap()
}

pub fn person() -> By {
    By {
        actor: actor(None),
        source: Source::Human,
    }
}

pub fn agent(id: &AgentId) -> By {
    By {
        actor: actor(Some(id.clone())),
        source: Source::Agent,
    }
}

fn actor(agent: Option<AgentId>) -> Actor {
    Actor {
        uid: 1000,
        pid: 4242,
        agent,
        via: "test".to_owned(),
        evidence: None,
    }
}

/// A plain command.
pub fn command(argv: &[&str]) -> SpawnParams {
    SpawnParams {
        args: Some(argv.iter().map(|&word| word.to_owned()).collect()),
        ..params("command", "")
    }
}

/// `sh -c SCRIPT`.
pub fn shell(script: &str) -> SpawnParams {
    command(&["sh", "-c", script])
}

/// The toy, which works on `prompt`.
pub fn toy(prompt: &str) -> SpawnParams {
    params("toy", prompt)
}

fn params(driver: &str, prompt: &str) -> SpawnParams {
    SpawnParams {
        driver: driver.to_owned(),
        prompt: prompt.into(),
        name: None,
        cwd: None,
        parent: None,
        desktop: None,
        display: None,
        args: None,
        env: Some(BTreeMap::new()),
        caller: SpawnCaller {
            name: "test".to_owned(),
            token: "".into(),
        },
    }
}

pub fn steer(id: &AgentId, name: &str, text: &str) -> SteerParams {
    SteerParams {
        id: id.clone(),
        text: text.into(),
        steer_id: Some(name.into()),
        when: None,
        wait: None,
        timeout_ms: None,
    }
}

/// The same, answered when that state is reached.
pub async fn steer_until(
    manager: &Manager,
    params: SteerParams,
    state: SteerState,
) -> Result<SteerResult, Refusal> {
    let params = SteerParams {
        wait: Some(state),
        timeout_ms: Some(20_000),
        ..params
    };
    manager.steer(&person(), params).await
}

pub async fn result(manager: &Manager, id: &AgentId) -> ResultResult {
    manager
        .result(ResultParams { id: id.clone() })
        .await
        .unwrap()
}

/// Waits until an agent stands so.
pub async fn stands(manager: &Manager, id: &AgentId, status: AgentStatus) {
    let found = || manager.status(id);
    eventually(&format!("{id} should be {status:?}"), || {
        found() == Some(status)
    })
    .await;
}

/// Waits until `condition` holds.
pub async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(LONG, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}

/// Waits for a file.
pub async fn appears(path: &Path) {
    eventually(&format!("{} should appear", path.display()), || {
        path.exists()
    })
    .await;
}
