//! Pages of the record.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params_from_iter};

use crate::chain::Hash;
use crate::elsewhere;
use crate::error::StoreError;
use crate::event::Event;
use crate::live::Published;
use crate::schema;

/// Most events in one page.
pub const MAX_PAGE: usize = 10_000;

/// Most bytes of event text in one page, so that a page fits into one answer on the wire.
const MAX_PAGE_BYTES: usize = 8 << 20;

/// Which events to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Only events with a greater number.
    pub since: u64,
    /// At most this many; 0 and everything above [`MAX_PAGE`] mean [`MAX_PAGE`].
    pub limit: usize,
    /// Only these kinds; all when empty.
    pub kinds: Vec<String>,
    /// Only events that concern this agent.
    pub agent: Option<String>,
}

/// Events in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The events.
    pub events: Vec<Event>,
    /// Where the next page starts: the value for [`Query::since`].
    pub next: u64,
    /// Whether the query matches more events than this page holds.
    pub more: bool,
    /// The head of the whole chain at the time of the read, in hexadecimal.
    pub head: String,
}

/// A connection for reading in the process that writes.
pub(crate) struct Reader {
    dir: PathBuf,
    connection: Connection,
    /// The file that it reads; see [`Published::generation`].
    generation: u64,
    published: Arc<Published>,
}

impl Reader {
    pub(crate) fn open(dir: &Path, published: Arc<Published>) -> Result<Self, StoreError> {
        Ok(Self {
            dir: dir.to_owned(),
            connection: schema::open_reader(dir)?,
            generation: published.generation(),
            published,
        })
    }

    /// The connection, opened anew if the database has been replaced.
    pub(crate) fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        let generation = self.published.generation();
        if generation != self.generation {
            self.connection = schema::open_reader(&self.dir)?;
            self.generation = generation;
        }
        Ok(&mut self.connection)
    }
}

/// Reads one page of the record in a session's directory, whether its host is running or not.
///
/// # Errors
/// When the database is missing, damaged, or cannot be read.
pub fn events_dir(dir: &Path, query: &Query) -> Result<Page, StoreError> {
    let mut record = elsewhere::open(dir)?;
    page(&mut record.connection, query)
        .map_err(|error| StoreError::sqlite(&schema::path_in(dir), &error))
}

/// Reads one page in one consistent view of the database.
pub(crate) fn page(connection: &mut Connection, query: &Query) -> rusqlite::Result<Page> {
    let transaction = connection.transaction()?;
    let tail = schema::tail(&transaction)?;
    let limit = match query.limit {
        0 => MAX_PAGE,
        limit => limit.min(MAX_PAGE),
    };
    let (sql, parameters) = statement(query, limit + 1);
    let mut statement = transaction.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(parameters))?;
    let mut events: Vec<Event> = Vec::new();
    let mut bytes = 0;
    let mut more = false;
    while let Some(row) = rows.next()? {
        let json: String = row.get(3)?;
        bytes += json.len();
        if events.len() == limit || (bytes > MAX_PAGE_BYTES && !events.is_empty()) {
            more = true;
            break;
        }
        let hash: Hash = row.get(4)?;
        events.push(Event {
            seq: u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0),
            kind: row.get(1)?,
            agent: row.get(2)?,
            json,
            hash: hex::encode(hash),
        });
    }
    let next = match events.last() {
        Some(last) if more => last.seq,
        // Everything up to the tail was looked at, whether it matched or not.
        _ => tail.seq.max(query.since),
    };
    Ok(Page {
        events,
        next,
        more,
        head: hex::encode(tail.hash),
    })
}

fn statement(query: &Query, limit: usize) -> (String, Vec<Sql>) {
    let mut sql = String::from("SELECT seq, kind, agent, body, hash FROM event WHERE seq > ?");
    let mut parameters = vec![Sql::Integer(i64::try_from(query.since).unwrap_or(i64::MAX))];
    if !query.kinds.is_empty() {
        sql.push_str(" AND kind IN (SELECT value FROM json_each(?))");
        let kinds = serde_json::Value::from(query.kinds.clone());
        parameters.push(Sql::Text(kinds.to_string()));
    }
    if let Some(agent) = &query.agent {
        sql.push_str(" AND agent = ?");
        parameters.push(Sql::Text(agent.clone()));
    }
    sql.push_str(" ORDER BY seq LIMIT ?");
    parameters.push(Sql::Integer(i64::try_from(limit).unwrap_or(i64::MAX)));
    (sql, parameters)
}
