//! A full disk: what grants power is refused, what reduces it is kept in memory and stored later.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use handover_store::{
    LiveItem, Mode, NewEvent, Options, Put, Query, Recorded, Source, Store, StoreError,
};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(20);

/// A small file system of its own; unmounted at the end.
struct SmallDisk {
    dir: tempfile::TempDir,
}

impl SmallDisk {
    /// `None`, with a message, where mounting is not allowed.
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        match mount(
            "tmpfs",
            dir.path(),
            "tmpfs",
            MountFlags::empty(),
            Some(c"size=1m"),
        ) {
            Ok(()) => Some(Self { dir }),
            Err(error) => {
                eprintln!("skipped: a small disk cannot be mounted here ({error}); run as root");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Takes all room there is.
    fn fill(&self) -> PathBuf {
        use std::io::Write;
        let ballast = self.path().join("ballast");
        let mut file = fs::File::create(&ballast).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, so that a test that failed with an open database leaves no mount behind.
        let _ = unmount(self.path(), UnmountFlags::DETACH);
    }
}

/// Appends until the disk takes no more, since the log may still have room in its last page.
async fn exhaust(store: &Store) {
    for _ in 0..10_000 {
        let event = NewEvent::new("desktop_type", Source::Agent).field("pad", "x".repeat(4096));
        if store.append(event).await.is_err() {
            return;
        }
    }
    panic!("the disk never filled");
}

async fn healthy(store: &Store) {
    let waiting = async {
        while !store.healthy() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .expect("the store recovers by itself");
}

#[tokio::test]
async fn what_must_be_kept_is_kept_in_order_and_marked() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let store = Store::open(disk.path(), Options::new(Mode::Create)).unwrap();
    let mut live = store.subscribe();
    let ballast = disk.fill();
    exhaust(&store).await;
    let before = store.last_seq();
    assert!(!store.healthy());

    let refused = store
        .append(NewEvent::new("takeover_start", Source::Human))
        .await;
    assert!(matches!(refused, Err(StoreError::Storage { .. })));
    assert!(store.put("control/d1", 1).await.is_err());
    let steer = || NewEvent::new("steer", Source::Human);
    let refused = store.append_all(vec![steer(), steer()], vec![Put::set("steer/s1", 1)]);
    assert!(matches!(refused.await, Err(StoreError::Storage { .. })));
    assert!(store.put_evidence(vec![1; 100_000], "png").await.is_err());
    let leftovers = fs::read_dir(disk.path().join("evidence")).unwrap().count();
    assert_eq!(leftovers, 0, "half a picture is not left behind");
    // Reading goes on.
    assert_eq!(store.events(Query::default()).await.unwrap().next, before);

    let puts = vec![Put::set("control/d1", json!("agent"))];
    let ended = NewEvent::new("takeover_return", Source::Human).field("leaseId", "l-1");
    assert_eq!(
        store.append_spooled_with(ended, puts).await,
        Recorded::Spooled
    );
    store.append_soon(NewEvent::new("desktop_click", Source::Agent));
    assert_eq!(
        store
            .append_spooled(NewEvent::new("paused", Source::Human))
            .await,
        Recorded::Spooled
    );
    assert_eq!(store.last_seq(), before);

    fs::remove_file(ballast).unwrap();
    healthy(&store).await;
    let after = store
        .append(NewEvent::new("resumed", Source::Human))
        .await
        .unwrap();
    let page = store
        .events(Query {
            since: before,
            ..Query::default()
        })
        .await
        .unwrap();
    let kinds: Vec<_> = page
        .events
        .iter()
        .map(|event| event.kind.as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "takeover_return",
            "desktop_click",
            "paused",
            "gap",
            "resumed"
        ]
    );
    assert_eq!(after.seq, before + 5);
    let gap = page.events[3].to_map();
    assert_eq!(
        (gap["from"].as_u64(), gap["to"].as_u64()),
        (Some(before + 1), Some(before + 3))
    );
    assert!(!gap.contains_key("lost"));
    assert_eq!(store.get("control/d1").await.unwrap(), Some(json!("agent")));
    assert_eq!(store.get("steer/s1").await.unwrap(), None);
    // A subscriber sees the late ones like all others.
    let mut last = 0;
    while last < after.seq {
        let item = tokio::time::timeout(PATIENCE, live.next())
            .await
            .unwrap()
            .unwrap();
        match item {
            LiveItem::Event(event) => last = event.seq,
            LiveItem::Gap { .. } => panic!("the subscriber was not slow"),
        }
    }
    assert!(store.verify(Some(&after.hash)).await.unwrap().ok);
    store.close().await.unwrap();
}

#[tokio::test]
async fn the_spool_is_bounded_and_counts_what_it_lost() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let options = Options {
        spool_events: 10,
        ..Options::new(Mode::Create)
    };
    let store = Store::open(disk.path(), options).unwrap();
    let ballast = disk.fill();
    exhaust(&store).await;
    let before = store.last_seq();
    let mut outcomes = Vec::new();
    for n in 0..15 {
        let event = NewEvent::new("paused", Source::Human).field("n", n);
        outcomes.push(store.append_spooled(event).await);
    }
    assert!(
        outcomes[..10]
            .iter()
            .all(|outcome| *outcome == Recorded::Spooled)
    );
    assert!(
        outcomes[10..]
            .iter()
            .all(|outcome| *outcome == Recorded::Lost)
    );
    // Several at once share their fate, and each counts.
    let paused = || NewEvent::new("paused", Source::Human);
    let together = store.append_all_spooled(vec![paused(), paused()], vec![Put::set("k", 1)]);
    assert_eq!(together.await, Recorded::Lost);
    fs::remove_file(ballast).unwrap();
    healthy(&store).await;
    let page = store
        .events(Query {
            since: before,
            ..Query::default()
        })
        .await
        .unwrap();
    let gap = page.events[10].to_map();
    assert_eq!(
        (gap["kind"].as_str(), gap["lost"].as_u64()),
        (Some("gap"), Some(7))
    );
    assert_eq!(store.get("k").await.unwrap(), None);
    assert!(store.verify(None).await.unwrap().ok);
    store.close().await.unwrap();
}

#[tokio::test]
async fn closing_on_a_full_disk_says_what_is_left() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let store = Store::open(disk.path(), Options::new(Mode::Create)).unwrap();
    disk.fill();
    exhaust(&store).await;
    store
        .append_spooled(NewEvent::new("paused", Source::Human))
        .await;
    let error = store.close().await.unwrap_err();
    assert!(error.to_string().contains("1 events"), "{error}");
}

#[tokio::test]
async fn a_record_on_a_full_disk_can_be_reopened_and_read() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let store = Store::open(disk.path(), Options::new(Mode::Create)).unwrap();
    let ballast = disk.fill();
    exhaust(&store).await;
    let head = store.head();
    // The process dies here as far as the file is concerned: nothing is written any more.
    let _ = store.close().await;
    drop(store);
    fs::remove_file(ballast).unwrap();
    let store = Store::open(disk.path(), Options::new(Mode::Existing)).unwrap();
    assert_eq!(store.head(), head);
    assert!(store.verify(Some(&head)).await.unwrap().ok);
}
