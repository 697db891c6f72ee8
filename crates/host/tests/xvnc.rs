//! Xvnc below a keeper: it comes up however many start at once, it is private, it is adopted, and
//! nothing of it is left.

mod support;

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use handover_host::keeper::client::{Keeper, KeeperEvent};
use handover_host::system::process;
use handover_host::xvnc::{
    self, ConnectionEvent, DesktopFiles, Network, Started, StoredDesktop, XvncError, XvncOptions,
    application_env,
};
use rustix::process::Signal;
use support::{ended, keeper};
use tokio::net::UnixStream;
use tokio::sync::mpsc::UnboundedReceiver;

const GRACE: Duration = Duration::from_secs(2);

fn files(dir: &Path) -> DesktopFiles {
    DesktopFiles {
        dir: dir.join("d1"),
        rfb_socket: dir.join("d1.rfb"),
        keeper_socket: dir.join("keeper-d1.sock"),
        log: dir.join("d1-xvnc.log"),
        keeper_log: dir.join("d1-keeper.log"),
    }
}

fn xvnc_options() -> XvncOptions {
    XvncOptions {
        width: 640,
        height: 480,
        frame_rate: 60,
        title: "a test".into(),
        deadline: Duration::from_secs(30),
    }
}

async fn start(dir: &Path) -> (Keeper, UnboundedReceiver<KeeperEvent>, Started) {
    let (keeper, events) = keeper(dir).await;
    let started = xvnc::start(&keeper, &files(dir), &xvnc_options())
        .await
        .unwrap();
    (keeper, events, started)
}

fn traces(stored: &StoredDesktop) -> usize {
    [
        format!("/tmp/.X{}-lock", stored.display),
        format!("/tmp/.X11-unix/X{}", stored.display),
    ]
    .iter()
    .filter(|path| Path::new(path).exists())
    .count()
}

fn x_client(dir: &Path, stored: &StoredDesktop, cookie: bool) -> bool {
    let mut env = application_env(&files(dir), stored.display, std::env::vars());
    if !cookie {
        env.insert("XAUTHORITY".into(), "/dev/null".into());
    }
    Command::new("xdotool")
        .arg("getmouselocation")
        .env_clear()
        .envs(env)
        .output()
        .unwrap()
        .status
        .success()
}

#[tokio::test]
async fn comes_up_private_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (keeper, _events, mut started) = start(dir.path()).await;
    let rfb = std::fs::symlink_metadata(dir.path().join("d1.rfb")).unwrap();
    assert!(rfb.file_type().is_socket());
    assert_eq!(rfb.permissions().mode() & 0o777, 0o600);
    assert!(x_client(dir.path(), &started.stored, true));
    assert!(!x_client(dir.path(), &started.stored, false));
    if started.stored.network != Network::Shared(String::new()) {
        // No interface but a loopback that is down.
        let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
        let server = started.stored.server.pid.to_string();
        assert_ne!(namespace(&server), namespace("self"));
    }

    assert_eq!(started.connections.try_next().unwrap(), None);
    let stream = UnixStream::connect(dir.path().join("d1.rfb"))
        .await
        .unwrap();
    assert_eq!(
        started.connections.next().await.unwrap(),
        ConnectionEvent::Accepted
    );
    drop(stream);
    assert_eq!(
        started.connections.next().await.unwrap(),
        ConnectionEvent::Closed
    );

    assert_eq!(keeper.end(GRACE).await, []);
    assert_eq!(traces(&started.stored), 0);
    xvnc::clean_up(&files(dir.path()), Some(&started.stored)).unwrap();
    assert!(!dir.path().join("d1").exists());
    assert!(!dir.path().join("d1.rfb").exists());
}

#[tokio::test]
async fn ten_at_once_each_have_a_display_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut tasks = Vec::new();
    for number in 0..10 {
        let dir = dir.path().join(format!("{number}"));
        tasks.push(tokio::spawn(async move {
            std::fs::create_dir(&dir).unwrap();
            std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o700)).unwrap();
            start(&dir).await
        }));
    }
    let mut all = Vec::new();
    for task in tasks {
        all.push(task.await.unwrap());
    }
    let mut displays: Vec<u32> = all.iter().map(|(_, _, s)| s.stored.display).collect();
    displays.sort_unstable();
    displays.dedup();
    assert_eq!(displays.len(), 10);
    for (number, (_, _, started)) in all.iter().enumerate() {
        let dir = dir.path().join(format!("{number}"));
        assert!(x_client(&dir, &started.stored, true));
    }
    for (keeper, _, _) in &all {
        assert_eq!(keeper.end(GRACE).await, []);
    }
    assert!(all.iter().all(|(_, _, s)| traces(&s.stored) == 0));
}

#[tokio::test]
async fn a_later_host_adopts_it() {
    let dir = tempfile::tempdir().unwrap();
    let (first, _events, started) = start(dir.path()).await;
    let stranger = UnixStream::connect(dir.path().join("d1.rfb"))
        .await
        .unwrap();
    drop(first);
    let text = serde_json::to_string(&started.stored).unwrap();
    let stored: StoredDesktop = serde_json::from_str(&text).unwrap();
    let (keeper, _events) = Keeper::adopt(
        &dir.path().join("keeper-d1.sock"),
        stored.keeper,
        &stored.boot_id,
    )
    .await
    .unwrap();
    let mut adopted = xvnc::adopt(&keeper, &files(dir.path()), &stored)
        .await
        .unwrap();
    assert_eq!(adopted.passwords, started.passwords);
    // A connection that nobody told us of.
    adopted.connections.next().await.unwrap();
    assert_eq!(adopted.connections.open_connections(), 1);
    drop(stranger);

    let mut other = stored.clone();
    other.server.start_ticks -= 1;
    assert!(matches!(
        xvnc::adopt(&keeper, &files(dir.path()), &other).await,
        Err(XvncError::NotAdoptable(_))
    ));
    keeper.end(GRACE).await;
}

#[tokio::test]
async fn its_end_is_reported_and_what_a_kill_leaves_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (keeper, mut events, started) = start(dir.path()).await;
    started.stored.server.signal(Signal::KILL).unwrap();
    assert!(matches!(
        events.recv().await,
        Some(KeeperEvent::ServerExited { .. })
    ));
    assert_eq!(traces(&started.stored), 2);
    xvnc::clean_up(&files(dir.path()), Some(&started.stored)).unwrap();
    assert_eq!(traces(&started.stored), 0);
    keeper.end(GRACE).await;
}

#[tokio::test]
async fn dies_with_its_keeper() {
    let dir = tempfile::tempdir().unwrap();
    let (keeper, _events, started) = start(dir.path()).await;
    keeper.process().signal(Signal::KILL).unwrap();
    ended(started.stored.server).await;
    assert_eq!(keeper.kill_leftovers().await, []);
    xvnc::clean_up(&files(dir.path()), Some(&started.stored)).unwrap();
}

#[tokio::test]
async fn a_failed_start_shows_what_xvnc_said() {
    let dir = tempfile::tempdir().unwrap();
    let (keeper, _events) = keeper(dir.path()).await;
    let options = XvncOptions {
        width: 0,
        ..xvnc_options()
    };
    let error = xvnc::start(&keeper, &files(dir.path()), &options)
        .await
        .unwrap_err();
    assert!(matches!(error, XvncError::Exited { .. }), "{error:?}");
    assert!(error.to_string().contains("Couldn't add screen"), "{error}");
    assert!(
        process::descendants(keeper.process().pid)
            .unwrap()
            .is_empty()
    );
    keeper.end(GRACE).await;
}
