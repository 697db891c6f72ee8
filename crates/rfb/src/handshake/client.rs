//! The handshake towards a display server.

use super::{
    Gather, HandshakeError, NAME_LIMIT, Progress, ProtocolVersion, REASON_LIMIT, SecurityType,
    ServerInit,
};
use crate::{PixelFormat, vncauth};

/// Bytes of a VncAuth challenge.
const CHALLENGE_LEN: usize = 16;
/// Bytes of a ServerInit before its name.
const INIT_LEN: usize = 24;

/// What the server may be given to let us in.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// Nothing; the server must offer security type None.
    None,
    /// A password for VncAuth. A server that asks for none is accepted too.
    Password(String),
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Credentials::None => "None",
            Credentials::Password(_) => "Password(..)",
        })
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Version,
    /// 3.3: the server's decision.
    Decision,
    /// 3.7 and later: the length of the list.
    Count(ProtocolVersion),
    List(ProtocolVersion, usize),
    Challenge(ProtocolVersion),
    Outcome(ProtocolVersion, SecurityType),
    ReasonLength(Failure),
    Reason(Failure, usize),
    Init,
    Name(ServerGeometry, usize),
    Over,
}

/// At which point the server turned us away.
#[derive(Debug, Clone, Copy)]
enum Failure {
    Connection,
    Authentication,
}

#[derive(Debug, Clone, Copy)]
struct ServerGeometry {
    width: u16,
    height: u16,
    format: PixelFormat,
}

/// The client's side of a handshake. The connection is always asked for as a shared one.
#[derive(Debug)]
pub struct ClientHandshake {
    credentials: Credentials,
    step: Step,
    gather: Gather,
}

impl ClientHandshake {
    /// A handshake that waits for the server's greeting.
    pub fn new(credentials: Credentials) -> ClientHandshake {
        ClientHandshake {
            credentials,
            step: Step::Version,
            gather: Gather::default(),
        }
    }

    /// Takes what the server sent and appends the answers to `out`.
    ///
    /// # Errors
    /// The server does not speak RFB, turned us away, or offers nothing that we can use.
    pub fn advance(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress<ServerInit>, HandshakeError> {
        let mut rest = input;
        loop {
            let Some(bytes) = self.gather.take(&mut rest, self.wanted()) else {
                return Ok(Progress::More);
            };
            if let Some(result) = self.step(&bytes, out)? {
                return Ok(Progress::Done {
                    consumed: input.len() - rest.len(),
                    result,
                });
            }
        }
    }

    /// Bytes that the present step needs.
    fn wanted(&self) -> usize {
        match self.step {
            Step::Version => ProtocolVersion::WIRE_LEN,
            Step::Count(_) => 1,
            Step::Decision | Step::Outcome(..) | Step::ReasonLength(_) => 4,
            Step::List(_, length) | Step::Reason(_, length) | Step::Name(_, length) => length,
            Step::Challenge(_) => CHALLENGE_LEN,
            Step::Init => INIT_LEN,
            Step::Over => 0,
        }
    }

    /// Takes one complete step.
    fn step(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<ServerInit>, HandshakeError> {
        match self.step {
            Step::Version => {
                let version = ProtocolVersion::decode(bytes)?;
                out.extend(version.line());
                self.step = match version {
                    ProtocolVersion::V3_3 => Step::Decision,
                    version => Step::Count(version),
                };
            }
            Step::Decision => match u32_at(bytes, 0) {
                0 => self.step = Step::ReasonLength(Failure::Connection),
                decided => {
                    let offered = [u8::try_from(decided).unwrap_or(u8::MAX)];
                    let chosen = self.choose(&offered)?;
                    self.chosen(ProtocolVersion::V3_3, chosen, out);
                }
            },
            Step::Count(version) => {
                self.step = match bytes[0] {
                    0 => Step::ReasonLength(Failure::Connection),
                    count => Step::List(version, usize::from(count)),
                };
            }
            Step::List(version, _) => {
                let chosen = self.choose(bytes)?;
                out.push(chosen.code());
                self.chosen(version, chosen, out);
            }
            Step::Challenge(version) => {
                let mut challenge = [0; CHALLENGE_LEN];
                challenge.copy_from_slice(bytes);
                if let Credentials::Password(password) = &self.credentials {
                    out.extend(vncauth::response(password.as_bytes(), &challenge));
                }
                self.step = Step::Outcome(version, SecurityType::VncAuth);
            }
            Step::Outcome(version, security) => match (u32_at(bytes, 0), security, version) {
                (0, _, _) => self.init(out),
                (_, _, ProtocolVersion::V3_8) => {
                    self.step = Step::ReasonLength(match security {
                        SecurityType::None => Failure::Connection,
                        SecurityType::VncAuth => Failure::Authentication,
                    });
                }
                (_, SecurityType::None, _) => {
                    return Err(HandshakeError::Refused("no reason given".into()));
                }
                (_, SecurityType::VncAuth, _) => {
                    return Err(HandshakeError::AuthenticationFailed(
                        "no reason given".into(),
                    ));
                }
            },
            Step::ReasonLength(failure) => {
                self.step = Step::Reason(failure, bounded(u32_at(bytes, 0), REASON_LIMIT)?);
            }
            Step::Reason(failure, _) => {
                self.step = Step::Over;
                let reason = String::from_utf8_lossy(bytes).into_owned();
                return Err(match failure {
                    Failure::Connection => HandshakeError::Refused(reason),
                    Failure::Authentication => HandshakeError::AuthenticationFailed(reason),
                });
            }
            Step::Init => {
                let mut format = [0; PixelFormat::WIRE_LEN];
                format.copy_from_slice(&bytes[4..20]);
                let geometry = ServerGeometry {
                    width: u16::from_be_bytes([bytes[0], bytes[1]]),
                    height: u16::from_be_bytes([bytes[2], bytes[3]]),
                    format: PixelFormat::decode(&format).ok_or(HandshakeError::PixelFormat)?,
                };
                self.step = Step::Name(geometry, bounded(u32_at(bytes, 20), NAME_LIMIT)?);
            }
            Step::Name(geometry, _) => {
                self.step = Step::Over;
                return Ok(Some(ServerInit {
                    width: geometry.width,
                    height: geometry.height,
                    format: geometry.format,
                    name: String::from_utf8_lossy(bytes).into_owned(),
                }));
            }
            Step::Over => return Err(HandshakeError::Finished),
        }
        Ok(None)
    }

    /// The strongest of the offered types that our credentials allow.
    fn choose(&self, offered: &[u8]) -> Result<SecurityType, HandshakeError> {
        let usable: &[SecurityType] = match self.credentials {
            Credentials::None => &[SecurityType::None],
            Credentials::Password(_) => &[SecurityType::VncAuth, SecurityType::None],
        };
        usable
            .iter()
            .copied()
            .find(|security| offered.contains(&security.code()))
            .ok_or_else(|| HandshakeError::NoCommonSecurity(offered.to_vec()))
    }

    /// Goes on after the security type is settled.
    fn chosen(&mut self, version: ProtocolVersion, security: SecurityType, out: &mut Vec<u8>) {
        match (security, version) {
            (SecurityType::VncAuth, _) => self.step = Step::Challenge(version),
            (SecurityType::None, ProtocolVersion::V3_8) => {
                self.step = Step::Outcome(version, security);
            }
            (SecurityType::None, _) => self.init(out),
        }
    }

    /// Sends ClientInit: always shared, since an exclusive client throws every other one out.
    fn init(&mut self, out: &mut Vec<u8>) {
        out.push(1);
        self.step = Step::Init;
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn bounded(length: u32, limit: usize) -> Result<usize, HandshakeError> {
    match usize::try_from(length) {
        Ok(length) if length <= limit => Ok(length),
        _ => Err(HandshakeError::TooLong(length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INIT: &[u8] =
        b"\x05\0\x03\x20\x20\x18\0\x01\0\xff\0\xff\0\xff\x10\x08\0\0\0\0\0\0\0\x02d1";

    /// Runs a handshake byte by byte; returns its end and what the server was sent.
    fn run(
        credentials: Credentials,
        server: &[&[u8]],
    ) -> (Result<Option<ServerInit>, HandshakeError>, Vec<u8>) {
        let mut out = Vec::new();
        let mut handshake = ClientHandshake::new(credentials);
        for byte in server.concat() {
            match handshake.advance(&[byte], &mut out) {
                Ok(Progress::More) => {}
                Ok(Progress::Done { result, .. }) => return (Ok(Some(result)), out),
                Err(error) => return (Err(error), out),
            }
        }
        (Ok(None), out)
    }

    fn password() -> Credentials {
        Credentials::Password("secret".into())
    }

    #[test]
    fn every_version_with_none() {
        let cases: [(&[&[u8]], &[u8]); 3] = [
            (&[b"RFB 003.003\n\0\0\0\x01", INIT], b"RFB 003.003\n\x01"),
            (
                &[b"RFB 003.007\n\x02\x10\x01", INIT],
                b"RFB 003.007\n\x01\x01",
            ),
            (
                &[b"RFB 003.008\n\x01\x01\0\0\0\0", INIT],
                b"RFB 003.008\n\x01\x01",
            ),
        ];
        for (server, expected) in cases {
            let (end, sent) = run(Credentials::None, server);
            let init = end.expect("accepted").expect("complete");
            assert_eq!(
                (init.width, init.height, init.name.as_str()),
                (1280, 800, "d1")
            );
            assert_eq!(init.format, PixelFormat::BGRX);
            assert_eq!(sent, expected);
        }
    }

    #[test]
    fn every_version_with_a_password() {
        let answer = vncauth::response(b"secret", b"0123456789abcdef");
        let cases: [(&[&[u8]], &[u8]); 3] = [
            (
                &[b"RFB 003.003\n\0\0\0\x020123456789abcdef\0\0\0\0", INIT],
                b"RFB 003.003\n",
            ),
            (
                &[b"RFB 003.007\n\x02\x01\x020123456789abcdef\0\0\0\0", INIT],
                b"RFB 003.007\n\x02",
            ),
            (
                &[b"RFB 003.008\n\x01\x020123456789abcdef\0\0\0\0", INIT],
                b"RFB 003.008\n\x02",
            ),
        ];
        for (server, start) in cases {
            let (end, sent) = run(password(), server);
            assert!(end.expect("accepted").is_some());
            assert_eq!(sent, [start, &answer[..], &[1]].concat());
        }
    }

    #[test]
    fn failures_are_told_apart() {
        let reason: &[u8] = b"\0\0\0\x04busy";
        let end = |credentials, server: &[&[u8]]| run(credentials, server).0.expect_err("refused");
        assert_eq!(
            end(Credentials::None, &[b"RFB 003.008\n\0", reason]),
            HandshakeError::Refused("busy".into())
        );
        assert_eq!(
            end(
                password(),
                &[b"RFB 003.008\n\x01\x020123456789abcdef\0\0\0\x01", reason]
            ),
            HandshakeError::AuthenticationFailed("busy".into())
        );
        assert_eq!(
            end(Credentials::None, &[b"RFB 003.008\n\x02\x02\x10"]),
            HandshakeError::NoCommonSecurity(vec![2, 16])
        );
        assert_eq!(
            end(Credentials::None, &[b"RFB 003.008\n\0\xff\xff\xff\xff"]),
            HandshakeError::TooLong(u32::MAX)
        );
        assert_eq!(
            end(Credentials::None, &[b"HTTP/1.1 400"]),
            HandshakeError::NotRfb
        );
    }

    #[test]
    fn what_follows_is_left_alone() {
        let mut out = Vec::new();
        let mut handshake = ClientHandshake::new(Credentials::None);
        let all = [b"RFB 003.003\n\0\0\0\x01", INIT, b"\x02"].concat();
        let progress = handshake.advance(&all, &mut out);
        assert!(
            matches!(progress, Ok(Progress::Done { consumed, .. }) if consumed == all.len() - 1)
        );
    }

    #[test]
    fn a_password_is_not_shown() {
        assert!(!format!("{:?}", ClientHandshake::new(password())).contains("secret"));
    }
}
