//! A record that is damaged, empty, missing or too new is an error that names it, never a fresh start.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use handover_store::{
    DATABASE, Limits, Mode, NewEvent, Options, Source, Store, StoreError, prune, verify_dir,
};

async fn record(dir: &Path, events: u64) {
    let store = Store::open(dir, Options::new(Mode::Create)).unwrap();
    for _ in 0..events {
        store
            .append(NewEvent::new("paused", Source::Host))
            .await
            .unwrap();
    }
    store.close().await.unwrap();
}

fn refused(dir: &Path, mode: Mode) -> StoreError {
    match Store::open(dir, Options::new(mode)) {
        Ok(_) => panic!("a damaged record was opened"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn damage_is_named_with_its_file_and_remedy() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 4] = [
        ("emptied", |path| fs::write(path, "").unwrap()),
        ("text", |path| fs::write(path, "not a database").unwrap()),
        ("first page overwritten", |path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[..512].fill(0xAA);
            fs::write(path, bytes).unwrap();
        }),
        ("later page overwritten", |path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[4096..8192].fill(0xAA);
            fs::write(path, bytes).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let dir = tempfile::tempdir().unwrap();
        record(dir.path(), 50).await;
        let path = dir.path().join(DATABASE);
        damage(&path);
        let before = fs::read(&path).unwrap();
        for mode in [Mode::Existing, Mode::CreateOrExisting] {
            let error = refused(dir.path(), mode);
            assert!(
                matches!(error, StoreError::Corrupt { .. }),
                "{what}: {error}"
            );
            let message = error.to_string();
            assert!(message.contains(path.to_str().unwrap()) && message.contains("move this file"));
        }
        let after = fs::read(&path).unwrap();
        assert!(after == before, "{what}: the damaged file is evidence");
        let checked = verify_dir(dir.path(), None);
        assert!(checked.is_err() || !checked.unwrap().ok, "{what}");
    }
}

#[tokio::test]
async fn a_foreign_database_and_a_newer_one_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let connection = rusqlite::Connection::open(dir.path().join(DATABASE)).unwrap();
    connection.execute_batch("CREATE TABLE t (x)").unwrap();
    drop(connection);
    assert!(matches!(
        refused(dir.path(), Mode::Existing),
        StoreError::Corrupt { .. }
    ));

    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), 1).await;
    let connection = rusqlite::Connection::open(dir.path().join(DATABASE)).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    assert!(matches!(
        refused(dir.path(), Mode::Existing),
        StoreError::NewerSchema {
            found: 99,
            supported: 1,
            ..
        }
    ));
}

#[tokio::test]
async fn missing_and_existing_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(
        refused(dir.path(), Mode::Existing),
        StoreError::Missing { .. }
    ));
    assert!(matches!(
        verify_dir(dir.path(), None),
        Err(StoreError::Missing { .. })
    ));
    record(dir.path(), 1).await;
    assert!(matches!(
        refused(dir.path(), Mode::Create),
        StoreError::Exists { .. }
    ));
    let mode = fs::metadata(dir.path().join(DATABASE))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_creation_that_was_cut_short_is_begun_again() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("session.db.new"), "half").unwrap();
    record(dir.path(), 1).await;
    assert!(verify_dir(dir.path(), None).unwrap().ok);
    assert!(!dir.path().join("session.db.new").exists());
}

#[tokio::test]
async fn the_oldest_ended_sessions_go_and_a_live_one_stays() {
    let root = tempfile::tempdir().unwrap();
    for n in 0..6 {
        let dir = root.path().join(format!("s{n}"));
        fs::create_dir(&dir).unwrap();
        record(&dir, 1).await;
        fs::write(dir.join("evidence/picture.png"), vec![0; 200_000]).unwrap();
        // Their age is what counts, so it is set rather than waited for.
        let age = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000 + n);
        let file = fs::File::options()
            .write(true)
            .open(dir.join(DATABASE))
            .unwrap();
        file.set_modified(age).unwrap();
    }
    fs::create_dir(root.path().join("other")).unwrap();
    std::os::unix::fs::symlink("s0", root.path().join("link")).unwrap();
    let live = |dir: &Path| dir.ends_with("s0");
    // Two of them, but not three.
    const LEFT: u64 = 600_000;
    let names = |pruned: &handover_store::Pruned| {
        pruned
            .removed
            .iter()
            .map(|dir| dir.file_name().unwrap().to_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };

    let limits = Limits {
        ended_sessions: 3,
        ..Limits::default()
    };
    assert_eq!(
        names(&prune(root.path(), limits, live).unwrap()),
        ["s1", "s2"]
    );
    let limits = Limits {
        bytes: LEFT,
        ended_sessions: 20,
    };
    let pruned = prune(root.path(), limits, live).unwrap();
    // The live one does not count.
    assert_eq!(names(&pruned), ["s3"]);
    assert!(pruned.bytes <= LEFT);
    let limits = Limits {
        bytes: 1,
        ended_sessions: 0,
    };
    let pruned = prune(root.path(), limits, live).unwrap();
    assert_eq!(names(&pruned), ["s4", "s5"]);
    assert!(root.path().join("s0").join(DATABASE).exists() && root.path().join("other").exists());
    assert!(
        prune(&root.path().join("nowhere"), limits, live)
            .unwrap()
            .removed
            .is_empty()
    );
}
