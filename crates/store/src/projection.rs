//! Key/value projections: the state that is derived from events and changes with them.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

/// One change of a projection.
#[derive(Debug, Clone, PartialEq)]
pub struct Put {
    /// The key, such as `control/d1`.
    pub key: String,
    /// The new value; `None` removes the key.
    pub value: Option<Value>,
}

impl Put {
    /// Sets `key` to `value`.
    #[must_use]
    pub fn set(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self {
            key: key.into(),
            value: Some(value.into()),
        }
    }

    /// Removes `key`.
    #[must_use]
    pub fn delete(key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            value: None,
        }
    }

    pub(crate) fn apply(&self, connection: &Connection) -> rusqlite::Result<()> {
        match &self.value {
            Some(value) => connection
                .prepare_cached(
                    "INSERT INTO projection (key, value) VALUES (?1, ?2)
                     ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                )?
                .execute(params![self.key, value.to_string()])?,
            None => connection
                .prepare_cached("DELETE FROM projection WHERE key = ?1")?
                .execute([&self.key])?,
        };
        Ok(())
    }
}

/// The value of `key`.
pub(crate) fn get(connection: &Connection, key: &str) -> rusqlite::Result<Option<Value>> {
    let text: Option<String> = connection
        .prepare_cached("SELECT value FROM projection WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()?;
    text.map(|text| parse(&text)).transpose()
}

/// The first `limit` keys that start with `prefix` and come after `after`, with their values, in byte
/// order of the keys.
pub(crate) fn list(
    connection: &Connection,
    prefix: &str,
    after: &str,
    limit: usize,
) -> rusqlite::Result<Vec<(String, Value)>> {
    // A scan from the prefix on, rather than LIKE, whose wildcards a key may contain.
    let mut statement = connection.prepare_cached(
        "SELECT key, value FROM projection WHERE key >= ?1 AND key > ?2 ORDER BY key",
    )?;
    let mut rows = statement.query([prefix, after])?;
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        let key: String = row.get(0)?;
        if !key.starts_with(prefix) {
            break;
        }
        let text: String = row.get(1)?;
        found.push((key, parse(&text)?));
    }
    Ok(found)
}

/// Every key that `wanted` names, with the text of its value.
pub(crate) fn texts(
    connection: &Connection,
    wanted: impl Fn(&str) -> bool,
) -> rusqlite::Result<BTreeMap<String, String>> {
    let mut statement = connection.prepare("SELECT key, value FROM projection")?;
    let mut rows = statement.query([])?;
    let mut found = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let key: String = row.get(0)?;
        if wanted(&key) {
            found.insert(key, row.get(1)?);
        }
    }
    Ok(found)
}

/// Puts projections into a fresh database.
pub(crate) fn restore(
    connection: &mut Connection,
    all: &BTreeMap<String, String>,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for (key, value) in all {
        transaction
            .prepare_cached("INSERT OR REPLACE INTO projection (key, value) VALUES (?1, ?2)")?
            .execute([key, value])?;
    }
    transaction.commit()
}

fn parse(text: &str) -> rusqlite::Result<Value> {
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, Box::new(error))
    })
}
