//! A desktop's files: its cookie, its passwords, its sockets.

use std::io;
use std::path::{Path, PathBuf};

use handover_protocol::DesktopId;
use serde::{Deserialize, Serialize};

use crate::keeper::wire::ServerAccess;
use crate::session::SessionPaths;
use crate::system::atomic_file::replace_volatile;
use crate::system::dirs;

/// Where a desktop's files are: in the session's runtime directory, except the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesktopFiles {
    /// `<runtime>/d1/`, 0700, for cookie and passwords.
    pub dir: PathBuf,
    /// `<runtime>/d1.rfb`, the RFB socket.
    pub rfb_socket: PathBuf,
    /// `<runtime>/keeper-d1.sock`.
    pub keeper_socket: PathBuf,
    /// `<state>/logs/d1-xvnc.log`.
    pub log: PathBuf,
    /// `<state>/logs/d1-keeper.log`.
    pub keeper_log: PathBuf,
}

/// The two passwords of an Xvnc, eight characters each. Never shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Passwords {
    /// Full control.
    pub full: String,
    /// View only.
    pub view_only: String,
}

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Passwords(..)")
    }
}

impl Passwords {
    /// Reads them from where a desktop keeps them for the next host.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(path)?)?)
    }

    fn random() -> io::Result<Self> {
        let password = || -> io::Result<String> {
            // 32 of 64 values a character would do; all of base 64 but for what needs quoting.
            const ALPHABET: &[u8; 64] =
                b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
            let mut random = [0u8; 8];
            getrandom::fill(&mut random).map_err(io::Error::other)?;
            Ok(random
                .iter()
                .map(|byte| char::from(ALPHABET[usize::from(byte & 63)]))
                .collect())
        };
        Ok(Self {
            full: password()?,
            view_only: password()?,
        })
    }
}

impl DesktopFiles {
    /// The files of `desktop` in a session.
    pub fn new(paths: &SessionPaths, desktop: &DesktopId) -> Self {
        Self {
            dir: paths.desktop_dir(desktop),
            rfb_socket: paths.rfb_socket(desktop),
            keeper_socket: paths.keeper_socket(desktop),
            log: paths.logs().join(format!("{desktop}-xvnc.log")),
            keeper_log: paths.logs().join(format!("{desktop}-keeper.log")),
        }
    }

    /// The X cookie, for `XAUTHORITY`. Its entry fits any display, so that it can be written before
    /// the number is known.
    pub fn xauthority(&self) -> PathBuf {
        self.dir.join("Xauthority")
    }

    /// Both passwords as Xvnc reads them (`-PasswordFile`).
    pub fn password_file(&self) -> PathBuf {
        self.dir.join("passwd")
    }

    /// The X cookie itself, a secret.
    pub fn cookie(&self) -> io::Result<[u8; COOKIE_LENGTH]> {
        read_cookie(&self.xauthority())
    }

    /// How the display of this number is reached.
    pub(super) fn access(&self, display: u32) -> ServerAccess {
        ServerAccess {
            display,
            xauthority: self.xauthority(),
            rfb_socket: self.rfb_socket.clone(),
            passwords: self.clear_passwords(),
        }
    }

    /// Writes an Xauthority file with another cookie for the same display.
    pub fn write_other_xauthority(
        &self,
        name: &str,
        cookie: &[u8; COOKIE_LENGTH],
    ) -> io::Result<PathBuf> {
        let path = self.dir.join(name);
        replace_volatile(&path, &xauthority_entry(cookie))?;
        Ok(path)
    }

    fn clear_passwords(&self) -> PathBuf {
        self.dir.join("passwords.json")
    }

    /// Makes directory, cookie and passwords anew and removes an old RFB socket.
    pub(super) fn create(&self) -> io::Result<Passwords> {
        dirs::private_dir(&self.dir, "XDG_RUNTIME_DIR").map_err(io::Error::other)?;
        remove_if_there(&self.rfb_socket)?;
        let mut cookie = [0u8; 16];
        getrandom::fill(&mut cookie).map_err(io::Error::other)?;
        replace_volatile(&self.xauthority(), &xauthority_entry(&cookie))?;
        let passwords = Passwords::random()?;
        let hidden = handover_rfb::vncauth::password_file(
            passwords.full.as_bytes(),
            passwords.view_only.as_bytes(),
        );
        replace_volatile(&self.password_file(), &hidden)?;
        // What Xvnc reads is hidden by a published key only: nothing is lost by keeping the plain text
        // for the host that adopts this desktop.
        replace_volatile(&self.clear_passwords(), &serde_json::to_vec(&passwords)?)?;
        Ok(passwords)
    }

    pub(super) fn read_passwords(&self) -> io::Result<Passwords> {
        Passwords::read(&self.clear_passwords())
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        remove_if_there(&self.rfb_socket)?;
        remove_if_there(&self.keeper_socket)?;
        match std::fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Bytes of a `MIT-MAGIC-COOKIE-1`.
const COOKIE_LENGTH: usize = 16;

/// The cookie of a desktop's Xauthority file, which has one entry.
pub(crate) fn read_cookie(xauthority: &Path) -> io::Result<[u8; COOKIE_LENGTH]> {
    let entry = std::fs::read(xauthority)?;
    entry
        .last_chunk()
        .copied()
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// One entry of an Xauthority file: family, address, number, name, data, each text with its length,
/// numbers in network order. Family "wild" and an empty number fit every display.
fn xauthority_entry(cookie: &[u8; COOKIE_LENGTH]) -> Vec<u8> {
    const FAMILY_WILD: u16 = 65535;
    let mut entry = FAMILY_WILD.to_be_bytes().to_vec();
    for field in [&b""[..], b"", b"MIT-MAGIC-COOKIE-1", cookie] {
        // None is longer than 18 bytes.
        entry.extend_from_slice(&(field.len() as u16).to_be_bytes());
        entry.extend_from_slice(field);
    }
    entry
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_for_every_display() {
        let entry = xauthority_entry(&[7; 16]);
        assert_eq!(entry[..8], [255, 255, 0, 0, 0, 0, 0, 18]);
        assert_eq!(&entry[8..26], b"MIT-MAGIC-COOKIE-1");
        assert_eq!(entry[26..28], [0, 16]);
        assert_eq!(entry[28..], [7; 16]);
    }

    #[test]
    fn passwords_differ_and_are_not_shown() {
        let passwords = Passwords::random().unwrap();
        assert_eq!(passwords.full.len(), 8);
        assert_ne!(passwords.full, passwords.view_only);
        assert_eq!(format!("{passwords:?}"), "Passwords(..)");
    }
}
