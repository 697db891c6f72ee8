//! Where the socket is, and whose it is.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;

use handover_protocol::Manifest;
use handover_protocol::server::ServeError;
use handover_protocol::server::lock::LockError;

use super::*;

fn mode(path: &Path) -> u32 {
    let metadata = std::fs::symlink_metadata(path).unwrap();
    metadata.permissions().mode() & 0o777
}

fn manifest(dir: &Path) -> Manifest {
    let text = std::fs::read(dir.join("attach.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[tokio::test]
async fn private_whatever_the_umask_and_gone_when_closed() {
    let before = rustix::process::umask(rustix::fs::Mode::empty());
    let served = Served::new().await;
    rustix::process::umask(before);
    assert_eq!(mode(&served.dir), 0o700);
    for name in ["attach.sock", "attach.json", "attach.lock"] {
        assert_eq!(mode(&served.dir.join(name)), 0o600, "{name}");
    }
    let shown = manifest(&served.dir);
    assert_eq!(shown.pid, std::process::id());
    assert_eq!(shown.session_id.as_str(), "here");
    assert_eq!(Path::new(&shown.socket_path), served.server.socket_path());
    let ids: Vec<_> = shown.agents.iter().map(|agent| agent.id.as_str()).collect();
    assert_eq!(ids, ["a0", "a1"], "from the first moment");
    served.server.close().await;
    assert!(!served.dir.exists());

    let served = Served::new().await;
    let mut follows = served.bare().await;
    follows.call(1, "subscribe", json!({})).await;
    drop(served.server);
    assert!(!served.dir.exists());
    assert_eq!(follows.next().await, None, "every connection ends with it");
}

#[tokio::test]
async fn what_others_could_reach_is_refused() {
    let above = tempfile::tempdir().unwrap();
    let open = above.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o750)).unwrap();
    let link = above.path().join("link");
    std::os::unix::fs::symlink(above.path(), &link).unwrap();
    for dir in [open, link] {
        let refused = AttachServer::bind(&dir, Noted::new()).await;
        assert!(matches!(refused, Err(ServeError::Dir(_))), "{refused:?}");
    }
    let nameless = above.path().join("two words");
    let refused = AttachServer::bind(&nameless, Noted::new()).await;
    assert!(matches!(refused, Err(ServeError::NoSession(_))));
    assert!(!nameless.exists());
}

#[tokio::test]
async fn a_dead_socket_is_replaced_and_a_live_one_never() {
    let served = Served::new().await;
    let second = AttachServer::bind(&served.dir, Noted::new()).await;
    assert!(
        matches!(&second, Err(ServeError::Lock(LockError::Held { holder, .. })) if *holder == Some(std::process::id())),
        "{second:?}"
    );
    served.client().await.0.hello("a test", None).await.unwrap();
    served.server.close().await;

    // Of a program that knows nothing of the lock.
    std::fs::create_dir(&served.dir).unwrap();
    std::fs::set_permissions(&served.dir, std::fs::Permissions::from_mode(0o700)).unwrap();
    let path = served.dir.join("attach.sock");
    let stranger = UnixListener::bind(&path).unwrap();
    let inode = std::fs::metadata(&path).unwrap().ino();
    let refused = AttachServer::bind(&served.dir, Noted::new()).await;
    assert!(matches!(refused, Err(ServeError::Taken(_))), "{refused:?}");
    assert_eq!(std::fs::metadata(&path).unwrap().ino(), inode);
    drop(stranger);
    let server = AttachServer::bind(&served.dir, Noted::new()).await.unwrap();
    assert_ne!(std::fs::metadata(&path).unwrap().ino(), inode);
    server.close().await;
    assert!(served.dir.exists(), "it was there before");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_those_who_race_one_serves_and_its_socket_stays() {
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("race");
    for round in 0..100 {
        let racers: Vec<_> = (0..4)
            .map(|_| {
                let dir = dir.clone();
                tokio::spawn(async move { AttachServer::bind(&dir, Noted::new()).await })
            })
            .collect();
        let mut won = Vec::new();
        for racer in racers {
            match racer.await.unwrap() {
                Ok(server) => won.push(server),
                Err(ServeError::Lock(_)) => {}
                Err(error) => panic!("round {round}: {error}"),
            }
        }
        assert_eq!(won.len(), 1, "round {round}");
        let mut bare = Bare::connect(&won[0].socket_path()).await;
        let answer = bare.call(1, "ping", json!({})).await;
        assert_eq!(answer["result"]["protocol"], 1);
        // Half of them with the next ones on their heels.
        match won.pop() {
            Some(server) if round % 2 == 0 => server.close().await,
            server => drop(server),
        }
    }
}

#[tokio::test]
async fn the_manifest_is_true_after_a_thousand_quick_changes() {
    let served = Served::new().await;
    let events = served.server.events();
    let id: AgentId = "a0".into();
    for change in 1..=1000 {
        let status = match change % 2 {
            0 => AgentStatus::Running,
            _ => AgentStatus::Waiting,
        };
        served.agents.agents.lock().unwrap()[0].status = status;
        events.agent_status(&id, status, None);
        if change % 50 == 0 {
            tokio::task::yield_now().await;
            assert_eq!(manifest(&served.dir).agents.len(), 2, "always whole");
        }
    }
    served.agents.agents.lock().unwrap()[0].status = AgentStatus::Done;
    events.agent_status(&id, AgentStatus::Done, None);
    until("the manifest should follow", || {
        manifest(&served.dir).agents[0].status == AgentStatus::Done
    })
    .await;
    let (client, _news) = served.client().await;
    let id = AbortParams { id: "a0".into() };
    client
        .call::<_, AbortResult>(Method::Abort, &id, ANSWER)
        .await
        .unwrap();
    until("what is aborted should be shown", || {
        let agents = manifest(&served.dir).agents;
        agents.iter().all(|a| a.status == AgentStatus::Aborted)
    })
    .await;
}
