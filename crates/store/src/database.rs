//! The writer's database, and what becomes of it when somebody damages its files while it is in use.
//!
//! The files are looked at before each transaction. If they are not as the last one left them, what is
//! still whole is copied; failing that the damaged files are moved aside and a fresh database goes on
//! with the chain where it was. Both are said in the record. Without this, a host whose record was
//! removed would go on as if all it stores were kept, and one whose record was overwritten could grant
//! control to nobody until it is restarted.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use handover_protocol::Source;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::StoreError;
use crate::event::{NewEvent, Prepared};
use crate::projection::{self, Put};
use crate::schema::{self, DATABASE, Tail};

/// See the module's text.
pub(crate) struct Database {
    dir: PathBuf,
    /// `None` only while what is in place instead of a damaged database cannot be opened.
    connection: Option<Connection>,
    /// The files as the last transaction left them.
    known: Files,
    /// Damage was found and is not mended yet.
    damaged: bool,
    /// The name that the damaged files were moved to, until they are replaced.
    aside: Option<String>,
    /// Projections have to be restored: the database in place is a fresh one.
    fresh: bool,
    /// The projections that outlive the file: few and small.
    projections: BTreeMap<String, String>,
    /// The beginnings of the keys of all others.
    on_disk_only: &'static [&'static str],
    /// What is to be said first in the next transaction.
    mended: Option<Prepared>,
}

impl Database {
    /// Opens the database for writing.
    pub(crate) fn open(
        dir: &Path,
        on_disk_only: &'static [&'static str],
    ) -> Result<(Self, Tail), StoreError> {
        let (connection, tail) = schema::open_writer(dir)?;
        let projections = projection::texts(&connection, |key| !is_in(on_disk_only, key))
            .map_err(|error| StoreError::sqlite(&schema::path_in(dir), &error))?;
        let database = Self {
            dir: dir.to_owned(),
            connection: Some(connection),
            known: Files::look(dir),
            damaged: false,
            aside: None,
            fresh: false,
            projections,
            on_disk_only,
            mended: None,
        };
        Ok((database, tail))
    }

    /// Looks at the files and mends what is damaged. `true` if the database is another file now: then
    /// every other connection is of no use any more.
    pub(crate) fn ready(&mut self, tail: Tail) -> Result<bool, StoreError> {
        let damaged = self.damaged || Files::look(&self.dir) != self.known;
        if damaged {
            self.mend(tail)?;
        }
        Ok(damaged)
    }

    /// Begins a transaction, after [`Database::ready`].
    pub(crate) fn begin(&mut self) -> Result<Transaction<'_>, StoreError> {
        let path = schema::path_in(&self.dir);
        let connection = self.connection.as_mut().ok_or(StoreError::Closed)?;
        connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|error| StoreError::sqlite(&path, &error))
    }

    /// What is to be said first in the next transaction: that the database was mended.
    pub(crate) fn note(&self) -> Option<Prepared> {
        self.mended.clone()
    }

    /// A transaction has ended well.
    pub(crate) fn committed<'a>(&mut self, puts: impl Iterator<Item = &'a Put>) {
        self.mended = None;
        for put in puts {
            if is_in(self.on_disk_only, &put.key) {
                continue;
            }
            match &put.value {
                Some(value) => self.projections.insert(put.key.clone(), value.to_string()),
                None => self.projections.remove(&put.key),
            };
        }
        self.known = Files::look(&self.dir);
    }

    /// A transaction has failed. Damage is mended before the next one.
    pub(crate) fn failed(&mut self, error: &StoreError) {
        if matches!(error, StoreError::Corrupt { .. }) {
            self.damaged = true;
        } else if !self.damaged {
            // Half a transaction may have reached the log.
            self.known = Files::look(&self.dir);
        }
    }

    fn mend(&mut self, tail: Tail) -> Result<(), StoreError> {
        let path = schema::path_in(&self.dir);
        if !std::mem::replace(&mut self.damaged, true) {
            tracing::error!(path = %path.display(), "the record was changed from outside while in use");
        }
        if let Some(connection) = &self.connection {
            let event = if schema::copy(connection, &self.dir, tail)? {
                NewEvent::new("record_mended", Source::Host).field(
                    "reason",
                    "its files were changed while in use; nothing is lost",
                )
            } else {
                let aside = match self.aside.take() {
                    Some(aside) => aside,
                    None => self.set_aside()?,
                };
                self.aside = Some(aside.clone());
                schema::create(&self.dir)?;
                self.fresh = true;
                NewEvent::new("gap", Source::Host)
                    .field("from", 1)
                    .field("to", tail.seq.max(1))
                    .field("reason", "the record was damaged while in use")
                    .field("movedTo", aside)
            };
            self.mended = Some(Prepared::new(event));
            self.let_go();
        }
        let (mut connection, _) = schema::open_writer(&self.dir)?;
        if self.fresh {
            projection::restore(&mut connection, &self.projections)
                .map_err(|error| StoreError::sqlite(&path, &error))?;
        }
        self.connection = Some(connection);
        self.aside = None;
        self.fresh = false;
        self.damaged = false;
        Ok(())
    }

    /// Gives the old connection up. It must not touch files of the names that are in use anew.
    fn let_go(&mut self) {
        if let Some(old) = self.connection.take()
            && let Err(error) = old.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        {
            tracing::warn!(%error, "the damaged record's connection is left open");
            std::mem::forget(old);
        }
    }

    /// Moves what is left of the files to the first free name, which is answered.
    fn set_aside(&self) -> Result<String, StoreError> {
        let name = (1..)
            .map(|number| format!("{DATABASE}.damaged-{number}"))
            .find(|name| fs::symlink_metadata(self.dir.join(name)).is_err())
            .unwrap_or_default();
        for suffix in ["", "-wal", "-shm"] {
            let from = self.dir.join(format!("{DATABASE}{suffix}"));
            match fs::rename(&from, self.dir.join(format!("{name}{suffix}"))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::io("rename", &from, error));
                }
                _ => {}
            }
        }
        Ok(name)
    }
}

fn is_in(prefixes: &[&str], key: &str) -> bool {
    prefixes.iter().any(|prefix| key.starts_with(prefix))
}

/// The state of the database and its log, as far as the file system tells it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Files {
    database: Option<File>,
    log: Option<File>,
}

#[derive(Debug, PartialEq, Eq)]
struct File {
    inode: u64,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Files {
    fn look(dir: &Path) -> Self {
        Self {
            database: File::look(&schema::path_in(dir)),
            log: File::look(&dir.join(format!("{DATABASE}-wal"))),
        }
    }
}

impl File {
    fn look(path: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(path).ok()?;
        Some(Self {
            inode: found.ino(),
            bytes: found.len(),
            modified: found.modified().ok(),
        })
    }
}
