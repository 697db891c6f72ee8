//! Projections read from outside of their host, whether that is running or not.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::elsewhere::{self, Elsewhere};
use crate::error::StoreError;
use crate::{projection, schema};

/// The projections of one record, opened for reading only.
pub struct Projections {
    record: Elsewhere,
    path: PathBuf,
}

impl std::fmt::Debug for Projections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Projections")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Projections {
    /// Those of the record in a session's directory.
    ///
    /// # Errors
    /// When the database is missing, damaged, or cannot be read.
    pub fn open_dir(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            record: elsewhere::open(dir)?,
            path: schema::path_in(dir),
        })
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// When the database is damaged.
    pub fn get(&self, key: &str) -> Result<Option<Value>, StoreError> {
        projection::get(&self.record.connection, key)
            .map_err(|error| StoreError::sqlite(&self.path, &error))
    }

    /// The first `limit` keys that start with `prefix` and come after `after`, with their values, in
    /// byte order of the keys.
    ///
    /// # Errors
    /// When the database is damaged.
    pub fn list_page(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Value)>, StoreError> {
        projection::list(&self.record.connection, prefix, after, limit)
            .map_err(|error| StoreError::sqlite(&self.path, &error))
    }
}
