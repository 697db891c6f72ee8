//! What was acknowledged is there after the process was killed at any moment.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use handover_store::{Mode, NewEvent, Options, Query, Recorded, Source, Store, verify_dir};

/// Set in the child, which is this test binary run again: the session's directory.
const CHILD: &str = "HANDOVER_STORE_CRASH_CHILD";

/// Appends from several tasks for ever and prints each number once it is acknowledged.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn append_for_ever(dir: &str) {
    let store = Store::open(dir.as_ref(), Options::new(Mode::CreateOrExisting)).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..4 {
        let store = store.clone();
        tasks.spawn(async move {
            loop {
                let event = NewEvent::new("desktop_click", Source::Agent).field("task", task);
                let stored = if task == 0 {
                    match store.append_spooled(event).await {
                        Recorded::Stored(stored) => stored,
                        other => panic!("the disk takes writes, but the event was {other:?}"),
                    }
                } else {
                    store.append(event).await.unwrap()
                };
                // One write, so that lines of several tasks do not mix.
                println!("{} {}", stored.seq, stored.hash);
            }
        });
    }
    tasks.join_next().await;
}

#[test]
fn everything_acknowledged_survives_a_kill() {
    if let Ok(dir) = std::env::var(CHILD) {
        append_for_ever(&dir);
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged: Vec<(u64, String)> = Vec::new();
    // The record grows over the rounds, so that the log is merged into the database in some of them.
    for round in 1..=8_usize {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "everything_acknowledged_survives_a_kill",
                "--nocapture",
            ])
            .env(CHILD, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = acknowledged.len() + round * 40;
        let patience = Instant::now() + Duration::from_secs(60);
        while acknowledged.len() < wanted {
            assert!(Instant::now() < patience, "the child acknowledges nothing");
            acknowledged.extend(lines.next().unwrap().ok().and_then(|line| parse(&line)));
        }
        if round == 4 {
            // The host has its database to itself, and its record can be checked all the same.
            let report = verify_dir(dir.path(), None).unwrap();
            assert!(report.ok && report.events > 0);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it had printed before it died counts as well.
        acknowledged.extend(lines.map_while(Result::ok).filter_map(|line| parse(&line)));
        check(dir.path(), &acknowledged);
    }
}

/// `None` for the test harness's own lines, and for one that the kill cut off.
fn parse(line: &str) -> Option<(u64, String)> {
    let (seq, hash) = line.split_once(' ')?;
    (hash.len() == 64).then_some((seq.parse().ok()?, hash.to_owned()))
}

#[tokio::main(flavor = "current_thread")]
async fn check(dir: &std::path::Path, acknowledged: &[(u64, String)]) {
    // Before anything is mended by whoever may write.
    assert!(verify_dir(dir, None).unwrap().ok);
    let store = Store::open(dir, Options::new(Mode::Existing)).unwrap();
    let mut hashes = vec![String::new()];
    loop {
        let since = hashes.len() as u64 - 1;
        let page = store
            .events(Query {
                since,
                ..Query::default()
            })
            .await
            .unwrap();
        hashes.extend(page.events.into_iter().map(|event| event.hash));
        if !page.more {
            break;
        }
    }
    for (seq, hash) in acknowledged {
        let found = hashes.get(usize::try_from(*seq).unwrap());
        assert_eq!(found, Some(hash), "event {seq} was acknowledged");
    }
    assert!(verify_dir(dir, None).unwrap().ok);
    store.close().await.unwrap();
}
