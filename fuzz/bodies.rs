//! What each fuzz target does with its input. The corpus is replayed with the same code by `crates/rfb/tests/corpus.rs`
//! on a stable toolchain, so each target includes this file and uses one function of it.
#![allow(dead_code)]

use handover_rfb::PixelFormat;
use handover_rfb::framing::{
    CUT_TEXT_LIMIT, ClientMessage, ClientParser, FramingError, ServerEvent, ServerMessage,
    ServerParser,
};
use handover_rfb::gate::{Gate, GateOutput, Segment, Upstream, ViewerInput};
use handover_rfb::handshake::{
    ClientHandshake, Credentials, Progress, ServerHandshake, ServerInit,
};

/// The first byte says how the rest is cut.
fn cut(data: &[u8]) -> Option<(usize, &[u8])> {
    let (how, rest) = data.split_first()?;
    Some((usize::from(*how) + 1, rest))
}

/// All that a viewer says, from its version on: whole and in pieces it must mean the same.
pub fn from_viewer(data: &[u8]) {
    let Some((length, stream)) = cut(data) else {
        return;
    };
    let whole = viewer_messages(&[stream]);
    let pieces: Vec<&[u8]> = stream.chunks(length).collect();
    assert_eq!(viewer_messages(&pieces), whole);
}

type Outcome<T> = (Vec<T>, Option<FramingError>);

fn viewer_messages(pieces: &[&[u8]]) -> Outcome<ClientMessage> {
    let mut answers = Vec::new();
    let init = ServerInit {
        width: 4,
        height: 4,
        format: PixelFormat::BGRX,
        name: String::from("fuzz"),
    };
    let mut handshake = Some(ServerHandshake::new(init, &mut answers));
    let mut parser = ClientParser::new();
    let mut messages = Vec::new();
    for piece in pieces {
        let mut piece = *piece;
        if let Some(opening) = &mut handshake {
            match opening.advance(piece, &mut answers) {
                Ok(Progress::More) => continue,
                Ok(Progress::Done { consumed, .. }) => piece = &piece[consumed..],
                Err(_) => return (messages, None),
            }
            handshake = None;
        }
        parser.push(piece);
        loop {
            match parser.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
        assert!(parser.left_over() <= CUT_TEXT_LIMIT + 8);
    }
    (messages, None)
}

/// All that a server says, from its version on: whole and in pieces the same bytes must pass and the same messages
/// come out.
pub fn from_server(data: &[u8]) {
    let Some((length, stream)) = cut(data) else {
        return;
    };
    let whole = server_messages(&[stream]);
    let pieces: Vec<&[u8]> = stream.chunks(length).collect();
    assert_eq!(server_messages(&pieces), whole);
}

fn server_messages(pieces: &[&[u8]]) -> (Vec<u8>, Outcome<ServerMessage>) {
    let mut answers = Vec::new();
    let mut handshake = ClientHandshake::new(Credentials::Password(String::from("fuzz")));
    let mut parser: Option<ServerParser> = None;
    let (mut passed, mut messages) = (Vec::new(), Vec::new());
    for piece in pieces {
        let mut at = 0;
        let parser = match &mut parser {
            Some(parser) => parser,
            none => match handshake.advance(piece, &mut answers) {
                Ok(Progress::More) => continue,
                Ok(Progress::Done { consumed, result }) => {
                    at = consumed;
                    none.insert(ServerParser::new(result.format))
                }
                Err(_) => return (passed, (messages, None)),
            },
        };
        loop {
            match parser.next_event(piece, &mut at) {
                Ok(Some(ServerEvent::Header(range) | ServerEvent::Payload(range))) => {
                    passed.extend(&piece[range]);
                }
                Ok(Some(ServerEvent::Message(message))) => messages.push(message),
                Ok(Some(ServerEvent::Rectangle(_) | ServerEvent::End)) => {}
                Ok(None) => break,
                Err(error) => return (passed, (messages, Some(error))),
            }
        }
        assert_eq!(at, piece.len());
    }
    (passed, (messages, None))
}

/// A session through a gate. The input is a list of steps: a byte that says what happens, a length of two bytes, and
/// as many bytes.
pub fn gate(data: &[u8]) {
    let Some((first, mut steps)) = data.split_first() else {
        return;
    };
    let upstream = if first & 1 == 0 {
        Upstream::OWN
    } else {
        Upstream::FOREIGN
    };
    let mut gate = Gate::new(PixelFormat::BGRX, "fuzz", upstream);
    let mut to_server = ClientParser::new();
    let mut holder = false;
    let mut closed = false;
    while let [kind, high, low, rest @ ..] = steps {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (piece, later) = rest.split_at(length);
        steps = later;
        let mut out = GateOutput::default();
        match kind % 8 {
            0..=2 => gate.from_viewer(piece, &mut out),
            3..=5 => gate.from_server(piece, &mut out),
            6 => {
                holder = !holder;
                gate.set_holder(holder, &mut out);
            }
            _ => {
                let text = String::from_utf8_lossy(piece).into_owned();
                gate.set_title(&text, &mut out);
                gate.offer_clipboard(Some(text), &mut out);
            }
        }
        check(&out, piece, holder, closed, upstream, &mut to_server);
        closed |= out.close.is_some();
    }
}

/// What must hold after each step.
fn check(
    out: &GateOutput,
    input: &[u8],
    holder: bool,
    closed: bool,
    upstream: Upstream,
    to_server: &mut ClientParser,
) {
    if closed {
        assert!(out.to_viewer.is_empty() && out.to_server.is_empty() && out.input.is_empty());
    }
    assert!(holder || out.input.is_empty(), "an observer acted");
    let mut end = 0;
    for segment in &out.to_viewer {
        if let Segment::Input(range) = segment {
            assert!(end <= range.start && range.start < range.end && range.end <= input.len());
            end = range.end;
        }
    }
    to_server.push(&out.to_server);
    while let Some(message) = to_server
        .next_message()
        .expect("a gate sends valid messages")
    {
        match message {
            ClientMessage::SetPixelFormat(_)
            | ClientMessage::SetEncodings(_)
            | ClientMessage::UpdateRequest { .. }
            | ClientMessage::ContinuousUpdates { .. }
            | ClientMessage::Fence(_) => {}
            ClientMessage::Input(event) => {
                let mirrored = out.input.iter().any(|input| same_place(input, &event));
                assert!(upstream.view_only && mirrored, "input reached the server");
            }
            other => panic!("{other:?} reached the server"),
        }
    }
    assert_eq!(
        to_server.left_over(),
        0,
        "half a message reached the server"
    );
}

/// Whether `mirror` says where `input` was, and presses nothing.
fn same_place(input: &ViewerInput, mirror: &handover_rfb::InputMessage) -> bool {
    use handover_rfb::InputMessage::Pointer;
    match (input, mirror) {
        (
            ViewerInput::Input(Pointer { x, y, .. }),
            Pointer {
                mask: 0,
                x: at,
                y: down,
            },
        ) => (x, y) == (at, down),
        _ => false,
    }
}
