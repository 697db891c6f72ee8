//! VNC authentication: a DES challenge and response, weak by today's measure.
//!
//! It is used only on unix sockets inside a directory of mode 0700, where it tells full
//! connections from view-only ones. Passwords count up to eight bytes and are padded with zeros.

use des::Des;
use des::cipher::{BlockCipherEncrypt, KeyInit};

/// Length of a challenge and of the response to it in bytes.
pub const CHALLENGE_LENGTH: usize = 16;
/// Bytes of a password that count.
pub const PASSWORD_LENGTH: usize = 8;

/// The published key under which password files are hidden from a casual glance.
const FILE_KEY: [u8; 8] = [23, 82, 107, 6, 35, 78, 88, 7];

/// The response to `challenge` that proves knowledge of `password`.
#[must_use]
pub fn response(password: &[u8], challenge: &[u8; CHALLENGE_LENGTH]) -> [u8; CHALLENGE_LENGTH] {
    let cipher = cipher(padded(password));
    let mut answer = *challenge;
    for half in answer.as_chunks_mut::<8>().0 {
        encrypt(&cipher, half);
    }
    answer
}

/// The content of a password file for a TigerVNC server (`-PasswordFile`): a connection with
/// `full` may act, one with `view_only` may only watch.
#[must_use]
pub fn password_file(full: &[u8], view_only: &[u8]) -> [u8; 16] {
    let cipher = cipher(FILE_KEY);
    let mut file = [0; 16];
    for (part, password) in file
        .as_chunks_mut::<8>()
        .0
        .iter_mut()
        .zip([full, view_only])
    {
        *part = padded(password);
        encrypt(&cipher, part);
    }
    file
}

fn padded(password: &[u8]) -> [u8; PASSWORD_LENGTH] {
    let mut key = [0; PASSWORD_LENGTH];
    for (to, from) in key.iter_mut().zip(password) {
        *to = *from;
    }
    key
}

/// DES as VNC uses it: the bits of each byte of the key in reverse order.
fn cipher(key: [u8; 8]) -> Des {
    Des::new(&key.map(u8::reverse_bits).into())
}

fn encrypt(cipher: &Des, block: &mut [u8; 8]) {
    let mut whole = (*block).into();
    cipher.encrypt_block(&mut whole);
    *block = whole.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `printf 'full\nview\n' | tigervncpasswd -f`.
    const TIGERVNC_FILE: [u8; 16] = [
        0x06, 0x22, 0x0b, 0xa5, 0xb9, 0x27, 0xab, 0x49, 0x8b, 0xf7, 0x49, 0xad, 0xc0, 0x43, 0x13,
        0x5f,
    ];

    #[test]
    fn password_files_are_those_of_tigervncpasswd() {
        assert_eq!(password_file(b"full", b"view"), TIGERVNC_FILE);
    }

    #[test]
    fn each_half_of_a_challenge_is_answered_alone() {
        // A password file is the password encrypted under the file key, so that key taken as a
        // password must turn the padded passwords, as a challenge, into the file.
        let challenge = *b"full\0\0\0\0view\0\0\0\0";
        assert_eq!(response(&FILE_KEY, &challenge), TIGERVNC_FILE);
    }

    #[test]
    fn only_eight_bytes_of_a_password_count() {
        let challenge = [0x5a; CHALLENGE_LENGTH];
        assert_eq!(
            response(b"12345678", &challenge),
            response(b"123456789", &challenge)
        );
        assert_ne!(
            response(b"1234567", &challenge),
            response(b"12345678", &challenge)
        );
    }
}
