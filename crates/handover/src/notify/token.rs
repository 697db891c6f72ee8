//! The token that a receiver asks for, kept in a file of its own.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::config::read_limited;

/// The longest token, in bytes.
const LONGEST: u64 = 4096;

/// Reads a token.
///
/// # Errors
/// When the file cannot be read, everybody may read it, or what is in it is no token. What is in it is not
/// repeated.
pub fn read(path: &Path) -> io::Result<String> {
    let unfit = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    if fs::metadata(path)?.permissions().mode() & 0o007 != 0 {
        return Err(unfit("everybody may use it; chmod 600"));
    }
    let bytes = read_limited(path, LONGEST)?;
    let token = bytes.trim_ascii();
    if token.is_empty() || !token.iter().all(u8::is_ascii_graphic) {
        return Err(unfit("it must hold one token and nothing else"));
    }
    String::from_utf8(token.to_vec()).map_err(|_| unfit("it is no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_private_and_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let with = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            read(&path)
        };
        assert_eq!(with("tk_x\n", 0o600).unwrap(), "tk_x");
        assert_eq!(with("tk_x", 0o440).unwrap(), "tk_x");
        for (text, mode) in [
            ("tk_x", 0o644),
            ("", 0o600),
            ("a b", 0o600),
            ("a\nb", 0o600),
        ] {
            let error = with(text, mode).unwrap_err().to_string();
            assert!(!error.contains("tk_x"), "{error}");
        }
        assert!(with(&"a".repeat(5000), 0o600).is_err());
        assert!(read(&dir.path().join("none")).is_err());
    }
}
