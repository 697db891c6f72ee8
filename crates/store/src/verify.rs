//! Checking the chain: rows that were changed, removed, added or moved, and a record cut short.

use std::path::Path;

use rusqlite::Connection;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::chain::{self, Hash};
use crate::elsewhere;
use crate::error::StoreError;
use crate::schema;

/// Problems that a report lists one by one; the rest is only counted.
const LISTED: usize = 100;

/// What is wrong with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    /// The row's link does not follow from its content and the row before it.
    Changed,
    /// Rows before this one are missing.
    Removed,
    /// The row's content belongs to another number.
    Reordered,
    /// The expected head is nowhere in the chain: the record was cut short or replaced.
    Truncated,
}

/// One flaw and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Number of the row; for [`Flaw::Truncated`] the last one there is.
    pub seq: u64,
    /// What is wrong.
    pub flaw: Flaw,
}

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifyReport {
    /// Whether nothing is wrong.
    pub ok: bool,
    /// How many rows there are.
    pub events: u64,
    /// The head of the chain, in hexadecimal.
    pub head: String,
    /// How many flaws were found.
    pub flaws: u64,
    /// The first hundred of them.
    pub problems: Vec<Problem>,
}

/// Checks the record in a session's directory, whether its host is running or not.
///
/// `expected` is a head that was printed or journaled earlier: it must be found in the chain, which
/// may have grown since.
///
/// # Errors
/// When the database is missing, damaged as a file, or cannot be read.
pub fn verify_dir(dir: &Path, expected: Option<&str>) -> Result<VerifyReport, StoreError> {
    let mut record = elsewhere::open(dir)?;
    verify(&mut record.connection, dir, expected)
}

/// As [`verify_dir`], by a connection that is open.
pub(crate) fn verify(
    connection: &mut Connection,
    dir: &Path,
    expected: Option<&str>,
) -> Result<VerifyReport, StoreError> {
    check(connection, expected).map_err(|error| StoreError::sqlite(&schema::path_in(dir), &error))
}

fn check(connection: &mut Connection, expected: Option<&str>) -> rusqlite::Result<VerifyReport> {
    let expected = expected.map(|head| head.trim().to_ascii_lowercase());
    let transaction = connection.transaction()?;
    let mut statement =
        transaction.prepare("SELECT seq, kind, agent, body, hash FROM event ORDER BY seq")?;
    let mut rows = statement.query([])?;
    let mut findings = Findings::default();
    let mut head = chain::START;
    let mut last = 0;
    let mut events = 0;
    let mut met = expected.is_none();
    while let Some(row) = rows.next()? {
        let seq = u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0);
        let kind: String = row.get(1)?;
        let agent: Option<String> = row.get(2)?;
        let json: String = row.get(3)?;
        let stored: Hash = row.get(4)?;
        events += 1;
        if seq != last + 1 {
            findings.add(seq, Flaw::Removed);
        }
        match describes(&json, seq, &kind, agent.as_deref()) {
            Content::Fits if chain::link(&head, &json) != stored => {
                findings.add(seq, Flaw::Changed);
            }
            Content::Fits => {}
            Content::OtherNumber => findings.add(seq, Flaw::Reordered),
            Content::Broken => findings.add(seq, Flaw::Changed),
        }
        // Going on from the stored link shows each flaw once instead of everything after it too.
        head = stored;
        last = seq;
        met = met || expected.as_deref() == Some(hex::encode(head).as_str());
    }
    // The head of an empty record proves nothing of one that is not.
    met = met || (events == 0 && expected.as_deref() == Some(chain::GENESIS));
    if !met {
        findings.add(last, Flaw::Truncated);
    }
    Ok(VerifyReport {
        ok: findings.count == 0,
        events,
        head: hex::encode(head),
        flaws: findings.count,
        problems: findings.listed,
    })
}

#[derive(Default)]
struct Findings {
    count: u64,
    listed: Vec<Problem>,
}

impl Findings {
    fn add(&mut self, seq: u64, flaw: Flaw) {
        self.count += 1;
        if self.listed.len() < LISTED {
            self.listed.push(Problem { seq, flaw });
        }
    }
}

enum Content {
    Fits,
    OtherNumber,
    Broken,
}

/// Whether the text is that of this row: the columns beside it are only for searching, and not hashed.
fn describes(json: &str, seq: u64, kind: &str, agent: Option<&str>) -> Content {
    let Ok(map) = serde_json::from_str::<Map<String, Value>>(json) else {
        return Content::Broken;
    };
    let text = |name: &str| map.get(name).and_then(Value::as_str);
    if map.get("seq").and_then(Value::as_u64) != Some(seq) {
        Content::OtherNumber
    } else if text("kind") != Some(kind) || text("agent") != agent {
        Content::Broken
    } else {
        Content::Fits
    }
}
