//! Whatever is done to the rows of a record, the chain shows it.

use std::path::Path;

use handover_store::{
    Flaw, GENESIS, Mode, NewEvent, Options, Source, Store, VerifyReport, verify_dir,
};
use proptest::prelude::*;
use rusqlite::Connection;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// A closed record of `count` events, and its heads after each of them.
fn record(dir: &Path, count: u64) -> Vec<String> {
    runtime().block_on(async {
        let store = Store::open(dir, Options::new(Mode::Create)).unwrap();
        let mut heads = Vec::new();
        for n in 0..count {
            let event = NewEvent::new("desktop_click", Source::Agent)
                .desktop("d1")
                .field("x", n);
            heads.push(store.append(event).await.unwrap().hash);
        }
        store.close().await.unwrap();
        heads
    })
}

fn edit(dir: &Path, sql: &str, parameters: impl rusqlite::Params) -> usize {
    let connection = Connection::open(dir.join("session.db")).unwrap();
    connection.execute(sql, parameters).unwrap()
}

fn flaws(report: &VerifyReport) -> Vec<(u64, Flaw)> {
    report.problems.iter().map(|p| (p.seq, p.flaw)).collect()
}

#[test]
fn an_untouched_record_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let heads = record(dir.path(), 5);
    let report = verify_dir(dir.path(), None).unwrap();
    assert!(report.ok && report.events == 5 && report.head == heads[4]);
    // A head that was noted earlier is found in a record that has grown since.
    for head in &heads {
        assert!(verify_dir(dir.path(), Some(head)).unwrap().ok);
    }
    assert!(!verify_dir(dir.path(), Some(GENESIS)).unwrap().ok);
    assert!(
        verify_dir(dir.path(), Some(&heads[2].to_uppercase()))
            .unwrap()
            .ok
    );
}

#[test]
fn a_record_that_was_cut_short_needs_a_head_to_show() {
    let dir = tempfile::tempdir().unwrap();
    let heads = record(dir.path(), 5);
    edit(dir.path(), "DELETE FROM event WHERE seq > 3", []);
    assert!(verify_dir(dir.path(), None).unwrap().ok);
    assert!(verify_dir(dir.path(), Some(&heads[2])).unwrap().ok);
    let report = verify_dir(dir.path(), Some(&heads[4])).unwrap();
    assert_eq!(flaws(&report), [(3, Flaw::Truncated)]);
}

#[test]
fn a_rewritten_chain_needs_a_head_to_show() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let heads = record(dir.path(), 3);
    record(other.path(), 4);
    std::fs::copy(
        other.path().join("session.db"),
        dir.path().join("session.db"),
    )
    .unwrap();
    let report = verify_dir(dir.path(), Some(&heads[2])).unwrap();
    assert!(flaws(&report).contains(&(4, Flaw::Truncated)));
}

#[test]
fn the_columns_beside_the_text_are_checked_too() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), 3);
    edit(
        dir.path(),
        "UPDATE event SET kind = 'hidden' WHERE seq = 2",
        [],
    );
    edit(
        dir.path(),
        "UPDATE event SET agent = 'a1' WHERE seq = 3",
        [],
    );
    let report = verify_dir(dir.path(), None).unwrap();
    assert_eq!(flaws(&report), [(2, Flaw::Changed), (3, Flaw::Changed)]);
}

#[test]
fn a_live_record_can_be_checked() {
    let dir = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let store = Store::open(dir.path(), Options::new(Mode::Create)).unwrap();
        for _ in 0..20 {
            store
                .append(NewEvent::new("paused", Source::Host))
                .await
                .unwrap();
        }
        let report = store.verify(Some(&store.head())).await.unwrap();
        assert!(report.ok && report.events == 20);
        assert!(verify_dir(dir.path(), None).unwrap().ok);
        store
            .append(NewEvent::new("resumed", Source::Host))
            .await
            .unwrap();
    });
}

/// What somebody who can write the file may do to one row of a chain of [`ROWS`].
#[derive(Debug, Clone)]
enum Tampering {
    /// Replaces one byte of the text.
    Byte {
        seq: u64,
        at: usize,
        with: u8,
    },
    /// Replaces the text by other JSON with the right number.
    Text {
        seq: u64,
        x: u64,
    },
    /// Replaces the link.
    Link {
        seq: u64,
        byte: usize,
    },
    Remove {
        seq: u64,
    },
    /// Exchanges two rows with their links.
    Swap {
        a: u64,
        b: u64,
    },
    /// Removes a row and closes the hole in the numbers.
    Shift {
        seq: u64,
    },
    /// Adds a row at the end that follows from nothing.
    Forge {
        x: u64,
    },
}

const ROWS: u64 = 8;

fn tampering() -> impl Strategy<Value = Tampering> {
    let seq = 1..=ROWS;
    prop_oneof![
        (seq.clone(), any::<usize>(), any::<u8>()).prop_map(|(seq, at, with)| Tampering::Byte {
            seq,
            at,
            with
        }),
        (seq.clone(), 100..200u64).prop_map(|(seq, x)| Tampering::Text { seq, x }),
        (seq.clone(), 0..32usize).prop_map(|(seq, byte)| Tampering::Link { seq, byte }),
        // Removing the last row is a truncation, which only a head shows.
        (1..ROWS).prop_map(|seq| Tampering::Remove { seq }),
        (seq.clone(), seq).prop_filter_map("two rows", |(a, b)| {
            (a != b).then_some(Tampering::Swap { a, b })
        }),
        (1..ROWS).prop_map(|seq| Tampering::Shift { seq }),
        (100..200u64).prop_map(|x| Tampering::Forge { x }),
    ]
}

/// Applies it; `false` if it changed nothing.
fn apply(dir: &Path, tampering: &Tampering) -> bool {
    let connection = Connection::open(dir.join("session.db")).unwrap();
    connection
        .pragma_update(None, "synchronous", "OFF")
        .unwrap();
    let body = |seq: u64| -> Vec<u8> {
        connection
            .query_row(
                "SELECT CAST(body AS BLOB) FROM event WHERE seq = ?1",
                [seq.cast_signed()],
                |row| row.get(0),
            )
            .unwrap()
    };
    match *tampering {
        Tampering::Byte { seq, at, with } => {
            let mut bytes = body(seq);
            let at = at % bytes.len();
            if bytes[at] == with {
                return false;
            }
            bytes[at] = with;
            connection
                .execute(
                    "UPDATE event SET body = CAST(?2 AS TEXT) WHERE seq = ?1",
                    rusqlite::params![seq.cast_signed(), bytes],
                )
                .unwrap();
        }
        Tampering::Text { seq, x } => {
            let mut map: serde_json::Map<String, serde_json::Value> =
                serde_json::from_slice(&body(seq)).unwrap();
            map.insert("x".into(), x.into());
            let text = serde_json::to_string(&map).unwrap();
            connection
                .execute(
                    "UPDATE event SET body = ?2 WHERE seq = ?1",
                    rusqlite::params![seq.cast_signed(), text],
                )
                .unwrap();
        }
        Tampering::Link { seq, byte } => {
            let mut hash: [u8; 32] = connection
                .query_row(
                    "SELECT hash FROM event WHERE seq = ?1",
                    [seq.cast_signed()],
                    |row| row.get(0),
                )
                .unwrap();
            hash[byte] ^= 1;
            connection
                .execute(
                    "UPDATE event SET hash = ?2 WHERE seq = ?1",
                    rusqlite::params![seq.cast_signed(), hash],
                )
                .unwrap();
        }
        Tampering::Remove { seq } => {
            connection
                .execute("DELETE FROM event WHERE seq = ?1", [seq.cast_signed()])
                .unwrap();
        }
        Tampering::Swap { a, b } => {
            for (from, to) in [(a, 1000), (b, a), (1000, b)] {
                connection
                    .execute(
                        "UPDATE event SET seq = ?2 WHERE seq = ?1",
                        [from.cast_signed(), to.cast_signed()],
                    )
                    .unwrap();
            }
        }
        Tampering::Shift { seq } => {
            connection
                .execute("DELETE FROM event WHERE seq = ?1", [seq.cast_signed()])
                .unwrap();
            for later in seq + 1..=ROWS {
                connection
                    .execute(
                        "UPDATE event SET seq = seq - 1 WHERE seq = ?1",
                        [later.cast_signed()],
                    )
                    .unwrap();
            }
        }
        Tampering::Forge { x } => {
            let body = format!(r#"{{"kind":"resumed","seq":{},"x":{x}}}"#, ROWS + 1);
            connection
                .execute(
                    "INSERT INTO event (seq, kind, body, hash) VALUES (?1, 'resumed', ?2, ?3)",
                    rusqlite::params![(ROWS + 1).cast_signed(), body, [7u8; 32]],
                )
                .unwrap();
        }
    }
    true
}

#[test]
fn any_tampering_shows() {
    // Made once: syncing a record for every case would take most of the time.
    let original = tempfile::tempdir().unwrap();
    let heads = record(original.path(), ROWS);
    let database = original.path().join("session.db");
    let config = ProptestConfig {
        cases: 256,
        ..ProptestConfig::default()
    };
    proptest!(config, |(tampering in tampering())| {
        let dir = tempfile::tempdir().unwrap();
        std::fs::copy(&database, dir.path().join("session.db")).unwrap();
        prop_assume!(apply(dir.path(), &tampering));
        // Damage that SQLite itself finds is an error and shows as well.
        if let Ok(report) = verify_dir(dir.path(), Some(&heads[heads.len() - 1])) {
            prop_assert!(!report.ok, "{tampering:?} was not found");
        }
    });
}
