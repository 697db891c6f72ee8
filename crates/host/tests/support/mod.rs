//! What the tests of this crate share: a keeper of their own and waiting for a condition.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use handover_host::keeper::Owner;
use handover_host::keeper::client::{Keeper, KeeperEvent, KeeperOptions, KeeperProgram};
use handover_host::keeper::wire::Launch;
use handover_host::system::process::{self, ProcessIdentity};
use tokio::sync::mpsc::UnboundedReceiver;

/// The keeper built beside these tests.
pub fn program() -> KeeperProgram {
    KeeperProgram {
        exe: env!("CARGO_BIN_EXE_handover-keeper").into(),
        args: Vec::new(),
    }
}

/// A desktop's keeper in `dir`.
pub fn options(dir: &Path, orphan_timeout: Duration) -> KeeperOptions {
    KeeperOptions {
        session: "test".into(),
        owner: Owner::Desktop("d1".into()),
        socket: dir.join("keeper-d1.sock"),
        log: dir.join("keeper.log"),
        orphan_timeout,
    }
}

/// Starts [`options`]' keeper that ends by itself if the test fails.
pub async fn keeper(dir: &Path) -> (Keeper, UnboundedReceiver<KeeperEvent>) {
    Keeper::start(&program(), &options(dir, Duration::from_secs(60)))
        .await
        .unwrap()
}

/// A launch of `sh -c SCRIPT` that logs to `dir/out.log`.
pub fn shell(dir: &Path, script: &str) -> Launch {
    Launch {
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        cwd: dir.to_owned(),
        env: BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]),
        log: dir.join("out.log"),
        stdio: None,
        channel: None,
    }
}

/// Waits until `condition` holds; fails after 20 s.
pub async fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for a process to end.
pub async fn ended(process: ProcessIdentity) {
    eventually("the process should have ended", || {
        (!process.is_alive()).then_some(())
    })
    .await;
}

/// Waits for `file` to hold a pid, and answers that process.
pub async fn pid_in(file: &Path) -> ProcessIdentity {
    eventually("a pid should have been written", || {
        let text = std::fs::read_to_string(file).ok()?;
        let (first, _) = text.split_once('\n')?;
        ProcessIdentity::of(first.trim().parse().ok()?).ok()
    })
    .await
}

/// The living processes below `root`.
pub fn below(root: ProcessIdentity) -> Vec<u32> {
    process::descendants(root.pid)
        .unwrap()
        .iter()
        .map(|stat| stat.pid)
        .collect()
}

/// Memory of a process that is in no file, in KiB.
pub fn own_memory(process: ProcessIdentity) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid)).unwrap();
    status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok())
        .unwrap()
}
