//! Evidence files: pictures and the like, named by their content, durable before an event names them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::StoreError;
use crate::schema::{EVIDENCE, sync_dir};

/// A durable evidence file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Where it is.
    pub path: PathBuf,
    /// SHA-256 of its content, in hexadecimal; also its name.
    pub sha256: String,
}

/// Creates the directory of evidence files, ours alone.
pub(crate) fn prepare(dir: &Path) -> Result<(), StoreError> {
    let evidence = dir.join(EVIDENCE);
    match DirBuilder::new().mode(0o700).create(&evidence) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(StoreError::io("create", &evidence, error))
        }
        _ => Ok(()),
    }
}

/// Writes `bytes` so that after a crash the file is either whole or absent.
pub(crate) fn put(dir: &Path, bytes: &[u8], extension: &str) -> Result<Evidence, StoreError> {
    check_extension(extension)?;
    // Somebody may have removed the directory since the store was opened.
    prepare(dir)?;
    let evidence = dir.join(EVIDENCE);
    let sha256 = hex::encode(Sha256::digest(bytes));
    let path = evidence.join(format!("{sha256}.{extension}"));
    if path.exists() {
        // The same content under its own name is already durable.
        return Ok(Evidence { path, sha256 });
    }
    let temporary = evidence.join(format!(".{sha256}.{extension}.tmp"));
    let written = write(&temporary, bytes).and_then(|()| {
        fs::rename(&temporary, &path).map_err(|error| StoreError::io("rename", &temporary, error))
    });
    if let Err(error) = written {
        // Half a file is of no use and takes room on a disk that may be full.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    sync_dir(&evidence)?;
    Ok(Evidence { path, sha256 })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    // A temporary file that a crash left behind is overwritten.
    let mut file: File = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| StoreError::io("create", path, error))?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(|error| StoreError::io("write", path, error))
}

fn check_extension(extension: &str) -> Result<(), StoreError> {
    let good = (1..=8).contains(&extension.len())
        && extension
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if good {
        Ok(())
    } else {
        Err(StoreError::BadExtension {
            extension: extension.to_owned(),
        })
    }
}
