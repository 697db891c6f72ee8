//! The handshake towards a viewer, which is offered security type None and nothing else.

use super::{Gather, HandshakeError, Progress, ProtocolVersion, SecurityType, ServerInit};

/// What a viewer asked for in its handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewerInit {
    /// The protocol version that was agreed.
    pub version: ProtocolVersion,
    /// Whether the viewer is content to share the desktop. It always is shared; this is for the log.
    pub shared: bool,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Version,
    Choice(ProtocolVersion),
    Init(ProtocolVersion),
    Over,
}

/// The server's side of a handshake.
#[derive(Debug)]
pub struct ServerHandshake {
    init: ServerInit,
    step: Step,
    gather: Gather,
}

impl ServerHandshake {
    /// Starts the handshake by greeting the viewer, which is told `init` at the end.
    pub fn new(init: ServerInit, out: &mut Vec<u8>) -> ServerHandshake {
        out.extend(ProtocolVersion::V3_8.line());
        ServerHandshake {
            init,
            step: Step::Version,
            gather: Gather::default(),
        }
    }

    /// Takes what the viewer sent and appends the answers to `out`.
    ///
    /// # Errors
    /// The viewer does not speak RFB or chose a security type that was not offered. `out` then holds the last words
    /// for the viewer, if the protocol has any.
    pub fn advance(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress<ViewerInit>, HandshakeError> {
        let mut rest = input;
        loop {
            match self.step {
                Step::Version => {
                    let Some(line) = self.gather.take(&mut rest, ProtocolVersion::WIRE_LEN) else {
                        return Ok(Progress::More);
                    };
                    let version = ProtocolVersion::decode(&line)?;
                    if version == ProtocolVersion::V3_3 {
                        out.extend(u32::from(SecurityType::None.code()).to_be_bytes());
                        self.step = Step::Init(version);
                    } else {
                        out.extend([1, SecurityType::None.code()]);
                        self.step = Step::Choice(version);
                    }
                }
                Step::Choice(version) => {
                    let Some(choice) = self.gather.take(&mut rest, 1) else {
                        return Ok(Progress::More);
                    };
                    if choice[0] != SecurityType::None.code() {
                        self.step = Step::Over;
                        refuse(version, "this security type was not offered", out);
                        return Err(HandshakeError::NotOffered(choice[0]));
                    }
                    if version == ProtocolVersion::V3_8 {
                        out.extend(0u32.to_be_bytes());
                    }
                    self.step = Step::Init(version);
                }
                Step::Init(version) => {
                    let Some(shared) = self.gather.take(&mut rest, 1) else {
                        return Ok(Progress::More);
                    };
                    self.step = Step::Over;
                    self.init.encode(out);
                    return Ok(Progress::Done {
                        consumed: input.len() - rest.len(),
                        result: ViewerInit {
                            version,
                            shared: shared[0] != 0,
                        },
                    });
                }
                Step::Over => return Err(HandshakeError::Finished),
            }
        }
    }
}

/// Reports a failed security handshake, with a reason where the version has room for one.
fn refuse(version: ProtocolVersion, reason: &str, out: &mut Vec<u8>) {
    out.extend(1u32.to_be_bytes());
    if version == ProtocolVersion::V3_8 {
        out.extend((reason.len() as u32).to_be_bytes());
        out.extend(reason.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PixelFormat;

    fn init() -> ServerInit {
        ServerInit {
            width: 1280,
            height: 800,
            format: PixelFormat::BGRX,
            name: "d1".into(),
        }
    }

    fn init_bytes() -> Vec<u8> {
        let mut bytes = Vec::new();
        init().encode(&mut bytes);
        bytes
    }

    /// Runs a handshake byte by byte and returns what the viewer was sent.
    fn run(viewer: &[u8]) -> Result<(Vec<u8>, ViewerInit), HandshakeError> {
        let mut out = Vec::new();
        let mut handshake = ServerHandshake::new(init(), &mut out);
        for (at, byte) in viewer.iter().enumerate() {
            match handshake.advance(&[*byte], &mut out)? {
                Progress::More => {}
                Progress::Done { consumed, result } => {
                    assert_eq!((consumed, at), (1, viewer.len() - 1));
                    return Ok((out, result));
                }
            }
        }
        panic!("the handshake did not end");
    }

    #[test]
    fn version_3_8() {
        let (sent, result) = run(b"RFB 003.008\n\x01\x00").expect("accepted");
        let mut expected = b"RFB 003.008\n\x01\x01\0\0\0\0".to_vec();
        expected.extend(init_bytes());
        assert_eq!(sent, expected);
        assert_eq!(
            result,
            ViewerInit {
                version: ProtocolVersion::V3_8,
                shared: false
            }
        );
    }

    #[test]
    fn version_3_7_has_no_result_for_none() {
        let (sent, result) = run(b"RFB 003.007\n\x01\x01").expect("accepted");
        let mut expected = b"RFB 003.008\n\x01\x01".to_vec();
        expected.extend(init_bytes());
        assert_eq!(sent, expected);
        assert!(result.shared);
    }

    #[test]
    fn version_3_3_is_told_the_type() {
        let (sent, _) = run(b"RFB 003.003\n\x01").expect("accepted");
        let mut expected = b"RFB 003.008\n\0\0\0\x01".to_vec();
        expected.extend(init_bytes());
        assert_eq!(sent, expected);
    }

    #[test]
    fn what_follows_is_left_alone() {
        let mut out = Vec::new();
        let mut handshake = ServerHandshake::new(init(), &mut out);
        let progress = handshake.advance(b"RFB 003.008\n\x01\x01\x02\x00", &mut out);
        assert!(matches!(progress, Ok(Progress::Done { consumed: 14, .. })));
        assert_eq!(
            handshake.advance(b"", &mut out),
            Err(HandshakeError::Finished)
        );
    }

    #[test]
    fn other_types_are_refused_with_a_reason() {
        let mut out = Vec::new();
        let mut handshake = ServerHandshake::new(init(), &mut out);
        let refused = handshake.advance(b"RFB 003.008\n\x10", &mut out);
        assert_eq!(refused, Err(HandshakeError::NotOffered(16)));
        assert!(out.ends_with(b"not offered"));
    }
}
