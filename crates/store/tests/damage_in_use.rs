//! Files of the record that are damaged while it is in use: nothing that is acknowledged is said to be
//! kept when it is not, and the record goes on.

use std::fs;
use std::path::Path;

use handover_store::{Event, Flaw, Mode, NewEvent, Options, Put, Query, Source, Store, verify_dir};
use serde_json::json;

/// Little enough to be in memory still, and too much for that.
const SMALL: usize = 10;
const LARGE: usize = 500_000;

const FILES: [&str; 3] = ["session.db", "session.db-wal", "session.db-shm"];

/// A record of 20 events with as much text each.
async fn filled(text: usize) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        on_disk_only: &["steer/"],
        ..Options::new(Mode::Create)
    };
    let store = Store::open(dir.path(), options).unwrap();
    for n in 0..20 {
        let event = NewEvent::new("steer", Source::Agent)
            .field("x", n)
            .field("text", "x".repeat(text));
        store
            .append_with(
                event,
                vec![Put::set("control/d1", n), Put::set("steer/s1", n)],
            )
            .await
            .unwrap();
    }
    (dir, store)
}

const HARMS: [fn(&Path); 2] = [
    |path| fs::write(path, b"garbage").unwrap(),
    |path| fs::write(path, b"").unwrap(),
];

fn for_each(dir: &Path, names: &[&str], harm: fn(&Path)) {
    for name in names {
        let path = dir.join(name);
        if path.exists() {
            harm(&path);
        }
    }
}

async fn events(store: &Store) -> Vec<Event> {
    store.events(Query::default()).await.unwrap().events
}

#[tokio::test]
async fn removed_files_are_written_again_and_nothing_is_lost() {
    for names in [&FILES[..], &FILES[..1], &FILES[1..2]] {
        let (dir, store) = filled(SMALL).await;
        let head = store.head();
        for_each(dir.path(), names, |path| fs::remove_file(path).unwrap());
        let stored = store
            .append(NewEvent::new("takeover_return", Source::Human))
            .await
            .unwrap();
        assert_eq!(stored.seq, 22, "{names:?}");
        let all = events(&store).await;
        assert_eq!(all[20].kind, "record_mended");
        for key in ["control/d1", "steer/s1"] {
            assert_eq!(store.get(key).await.unwrap(), Some(json!(19)), "{key}");
        }
        store
            .append(NewEvent::new("paused", Source::Human))
            .await
            .unwrap();
        store.close().await.unwrap();
        assert!(verify_dir(dir.path(), Some(&head)).unwrap().ok);
        assert!(verify_dir(dir.path(), Some(&stored.hash)).unwrap().ok);
        let store = Store::open(dir.path(), Options::new(Mode::Existing)).unwrap();
        assert_eq!(store.last_seq(), 23);
    }
}

#[tokio::test]
async fn overwritten_and_emptied_files_are_moved_aside_and_said_to_be_lost() {
    for harm in HARMS {
        let (dir, store) = filled(LARGE).await;
        let head = store.head();
        for_each(dir.path(), &FILES, harm);
        // Ending a takeover works, and so does beginning the next one.
        let ended = NewEvent::new("takeover_return", Source::Human);
        let put = vec![Put::set("control/d2", "agent")];
        let stored = store.append_with(ended, put).await.unwrap();
        assert!(store.healthy());
        let begun = store
            .append(NewEvent::new("takeover_start", Source::Human))
            .await
            .unwrap();
        assert_eq!((stored.seq, begun.seq), (22, 23));

        let all = events(&store).await;
        let gap = all[0].to_map();
        assert_eq!(
            (
                gap["kind"].as_str(),
                gap["from"].as_u64(),
                gap["to"].as_u64()
            ),
            (Some("gap"), Some(1), Some(20))
        );
        let aside = gap["movedTo"].as_str().unwrap();
        assert!(dir.path().join(aside).exists(), "the damaged file is kept");
        // What the session needs to go on is there.
        assert_eq!(store.get("control/d1").await.unwrap(), Some(json!(19)));
        assert_eq!(store.get("control/d2").await.unwrap(), Some(json!("agent")));
        assert_eq!(store.get("steer/s1").await.unwrap(), None);
        store.close().await.unwrap();

        // The loss is not hidden.
        let report = verify_dir(dir.path(), Some(&head)).unwrap();
        let flaws: Vec<_> = report.problems.iter().map(|p| (p.seq, p.flaw)).collect();
        assert!(
            !report.ok && flaws.contains(&(21, Flaw::Removed)),
            "{flaws:?}"
        );
        let store = Store::open(dir.path(), Options::new(Mode::Existing)).unwrap();
        assert_eq!(
            store
                .append(NewEvent::new("paused", Source::Human))
                .await
                .unwrap()
                .seq,
            24
        );
    }
}

#[tokio::test]
async fn damage_again_and_again() {
    let (dir, store) = filled(SMALL).await;
    for round in 1..=3 {
        for_each(dir.path(), &FILES, |path| fs::write(path, b"x").unwrap());
        store
            .append(NewEvent::new("paused", Source::Human))
            .await
            .unwrap();
        assert_eq!(store.last_seq(), 20 + 2 * round);
    }
    let all = events(&store).await;
    assert_eq!(
        all.iter()
            .filter(|event| event.kind == "record_mended")
            .count(),
        3
    );
    assert!(store.verify(None).await.unwrap().ok);
    fs::remove_dir_all(dir.path().join("evidence")).unwrap();
    store
        .put_evidence(b"picture".to_vec(), "png")
        .await
        .unwrap();
}

#[tokio::test]
async fn what_is_in_memory_still_is_written_again() {
    for harm in HARMS {
        let (dir, store) = filled(SMALL).await;
        let head = store.head();
        for_each(dir.path(), &FILES, harm);
        store
            .append(NewEvent::new("paused", Source::Human))
            .await
            .unwrap();
        store.close().await.unwrap();
        let report = verify_dir(dir.path(), Some(&head)).unwrap();
        assert!(report.ok && report.events == 22);
    }
}

#[tokio::test]
async fn a_touched_file_is_no_loss() {
    let (dir, store) = filled(SMALL).await;
    let file = fs::File::options()
        .append(true)
        .open(dir.path().join("session.db"))
        .unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    let head = store.head();
    store
        .append(NewEvent::new("paused", Source::Human))
        .await
        .unwrap();
    assert!(store.verify(Some(&head)).await.unwrap().ok);
}
