//! Nothing that a killed keeper leaves escapes its host, not even what hides.
//!
//! Alone in its file, since it makes this process a subreaper, and so every other test's orphans its own.

mod support;

use std::time::Duration;

use handover_host::keeper::client::{Keeper, KeeperEvent};
use handover_host::system::{prctl, process};
use rustix::process::Signal;
use support::{ended, eventually, options, pid_in, program, shell};

/// Clears its environment, forks twice into sessions of its own, and goes on doing so for ever: none
/// that lives has been seen by the host.
const HIDES: &str = r#"exec env -i python3 -c '
import os, time
while True:
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
    with open("hidden.tmp", "w") as file: file.write("%d\n" % os.getpid())
    os.rename("hidden.tmp", "hidden")
    time.sleep(0.005)
'"#;

/// The same once, and then it stays: it has appeared after the last look.
const STAYS: &str = r#"exec env -i python3 -c '
import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
with open("stays.tmp", "w") as file: file.write("%d\n" % os.getpid())
os.rename("stays.tmp", "stays")
time.sleep(1000)
'"#;

#[tokio::test]
async fn what_hides_from_the_host_ends_with_the_keeper() {
    prctl::become_subreaper().unwrap();
    let dir = tempfile::tempdir().unwrap();
    // One that the host has itself, and one below another keeper: neither is an orphan.
    let mut own = tokio::process::Command::new("sleep")
        .arg("1000")
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let beside = tempfile::tempdir().unwrap();
    let patience = Duration::from_secs(60);
    let (other, _other_events) = Keeper::start(&program(), &options(beside.path(), patience))
        .await
        .unwrap();
    let kept = other
        .launch(&shell(beside.path(), "exec sleep 1000"))
        .await
        .unwrap();

    let (keeper, mut events) = Keeper::start(&program(), &options(dir.path(), patience))
        .await
        .unwrap();
    for script in [HIDES, STAYS] {
        keeper.launch(&shell(dir.path(), script)).await.unwrap();
    }
    let stays = pid_in(&dir.path().join("stays")).await;
    eventually("the other one should have begun", || {
        dir.path().join("hidden").exists().then_some(())
    })
    .await;
    keeper.process().signal(Signal::KILL).unwrap();
    while events.recv().await != Some(KeeperEvent::Gone) {}
    ended(keeper.process()).await;
    assert_eq!(keeper.kill_leftovers().await, []);

    assert!(!stays.is_alive());
    let left = process::all().unwrap().into_iter().find(|stat| {
        stat.is_living()
            && std::fs::read_link(format!("/proc/{}/cwd", stat.pid))
                .is_ok_and(|cwd| cwd == dir.path())
    });
    assert_eq!(left, None);
    assert!(own.try_wait().unwrap().is_none(), "a child of the host");
    assert!(kept.is_alive() && other.process().is_alive());
    other.end(Duration::from_millis(300)).await;
}
