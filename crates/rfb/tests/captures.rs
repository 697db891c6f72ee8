//! Sessions of real clients, recorded without a gate, parse to their last byte: alone, and through a gate.

use std::fs;
use std::path::{Path, PathBuf};

use handover_rfb::PixelFormat;
use handover_rfb::framing::{
    ClientMessage, ClientParser, ServerEvent, ServerMessage, ServerParser,
};
use handover_rfb::gate::{Gate, GateOutput, Upstream, ViewerInput};
use handover_rfb::handshake::{
    ClientHandshake, Credentials, Progress, ServerHandshake, ServerInit,
};

/// One direction of a recorded session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Client,
    Server,
}

/// A recorded session after its handshakes: its pieces in the order in which they were seen.
struct Session {
    name: String,
    init: ServerInit,
    pieces: Vec<(From, Vec<u8>)>,
}

impl Session {
    fn read(folder: &Path) -> Session {
        let name = folder
            .file_name()
            .expect("named")
            .to_string_lossy()
            .into_owned();
        let read = |file: &str| fs::read(folder.join(file)).expect("recorded");
        let (client, server) = (read("client.bin"), read("server.bin"));
        let order = String::from_utf8(read("order.txt")).expect("text");

        let mut ignored = Vec::new();
        let mut handshake = ClientHandshake::new(Credentials::None);
        let Ok(Progress::Done {
            consumed: from_server,
            result: init,
        }) = handshake.advance(&server, &mut ignored)
        else {
            panic!("{name}: the server's handshake is not complete");
        };
        let mut handshake = ServerHandshake::new(init.clone(), &mut ignored);
        let Ok(Progress::Done {
            consumed: from_client,
            ..
        }) = handshake.advance(&client, &mut ignored)
        else {
            panic!("{name}: the client's handshake is not complete");
        };

        let (mut client, mut server) = (&client[..], &server[..]);
        let (mut skip_client, mut skip_server) = (from_client, from_server);
        let mut pieces = Vec::new();
        for line in order.lines().filter(|line| !line.starts_with('#')) {
            let (side, length) = line.split_once(' ').expect("a side and a length");
            let length: usize = length.trim().parse().expect("a length");
            let (from, rest, skip) = match side {
                "c" => (From::Client, &mut client, &mut skip_client),
                _ => (From::Server, &mut server, &mut skip_server),
            };
            let (piece, later) = rest.split_at(length);
            *rest = later;
            let skipped = piece.len().min(*skip);
            *skip -= skipped;
            if skipped < piece.len() {
                pieces.push((from, piece[skipped..].to_vec()));
            }
        }
        assert!(
            client.is_empty() && server.is_empty(),
            "{name}: the order leaves bytes out"
        );
        Session { name, init, pieces }
    }

    /// The same in pieces of at most `length` bytes.
    fn cut(&self, length: usize) -> impl Iterator<Item = (From, &[u8])> {
        self.pieces
            .iter()
            .flat_map(move |(from, piece)| piece.chunks(length).map(move |part| (*from, part)))
    }

    /// Everything of one direction.
    fn all(&self, side: From) -> Vec<u8> {
        let of_side = self.pieces.iter().filter(|(from, _)| *from == side);
        of_side.flat_map(|(_, piece)| piece.clone()).collect()
    }
}

fn sessions() -> Vec<Session> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let entries = fs::read_dir(folder).expect("the captures are there");
    let folders = entries
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.is_dir());
    let sessions: Vec<Session> = folders.map(|folder| Session::read(&folder)).collect();
    assert!(sessions.len() >= 4, "captures of four clients at least");
    sessions
}

/// The viewer's messages of a session, cut as told.
fn client_messages(session: &Session, length: usize) -> Vec<ClientMessage> {
    let mut parser = ClientParser::new();
    let mut all = Vec::new();
    for (_, piece) in session
        .cut(length)
        .filter(|(from, _)| *from == From::Client)
    {
        parser.push(piece);
        while let Some(message) = parser.next_message().expect("a real client's message") {
            all.push(message);
        }
    }
    assert_eq!(parser.left_over(), 0, "{}", session.name);
    all
}

#[test]
fn real_viewers_parse_to_the_end_however_they_are_cut() {
    for session in sessions() {
        let messages = client_messages(&session, usize::MAX);
        let asks = |message: &ClientMessage| matches!(message, ClientMessage::UpdateRequest { .. });
        assert!(
            messages.iter().any(asks),
            "{}: nothing was asked for",
            session.name
        );
        for length in [1, 7, 64] {
            assert_eq!(
                client_messages(&session, length),
                messages,
                "{}",
                session.name
            );
        }
    }
}

/// Follows a session's server; returns how many rectangles there were and what is not part of an update.
fn server_messages(session: &Session, length: usize) -> (usize, Vec<ServerMessage>) {
    let mut parser = ServerParser::new(session.init.format);
    let mut client = ClientParser::new();
    let (mut rectangles, mut messages) = (0, Vec::new());
    for (from, piece) in session.cut(length) {
        if from == From::Client {
            client.push(piece);
            while let Some(message) = client.next_message().expect("a real client's message") {
                if let ClientMessage::SetPixelFormat(format) = message {
                    // All of these clients choose before they ask for anything.
                    assert_eq!(rectangles, 0, "{}", session.name);
                    parser.set_format(format);
                }
            }
            continue;
        }
        let mut at = 0;
        while let Some(event) = parser
            .next_event(piece, &mut at)
            .expect("a real server's message")
        {
            match event {
                ServerEvent::Rectangle(_) => rectangles += 1,
                ServerEvent::Message(message) => messages.push(message),
                ServerEvent::Header(_) | ServerEvent::Payload(_) | ServerEvent::End => {}
            }
        }
    }
    assert!(
        parser.at_boundary(),
        "{}: the last message is not complete",
        session.name
    );
    (rectangles, messages)
}

#[test]
fn real_servers_parse_to_the_end_however_they_are_cut() {
    for session in sessions() {
        let whole = server_messages(&session, usize::MAX);
        assert!(whole.0 > 0, "{}: there is no picture in it", session.name);
        for length in [1, 7, 64] {
            assert_eq!(server_messages(&session, length), whole, "{}", session.name);
        }
    }
}

/// A session through a gate: what the viewer and the server were sent, and the viewer's input.
fn through_a_gate(session: &Session, length: usize, holder: bool) -> (Vec<u8>, Vec<u8>, usize) {
    let mut gate = Gate::new(session.init.format, &session.init.name, Upstream::OWN);
    let mut out = GateOutput::default();
    gate.set_holder(holder, &mut out);
    let (mut to_viewer, mut to_server, mut input) = (Vec::new(), Vec::new(), 0);
    for (from, piece) in session.cut(length) {
        match from {
            From::Client => gate.from_viewer(piece, &mut out),
            From::Server => gate.from_server(piece, &mut out),
        }
        assert_eq!(out.close, None, "{}", session.name);
        out.to_viewer
            .iter()
            .for_each(|segment| to_viewer.extend(segment.bytes(piece)));
        to_server.append(&mut out.to_server);
        input += out
            .input
            .iter()
            .filter(|event| matches!(event, ViewerInput::Input(_)))
            .count();
        out.clear();
    }
    (to_viewer, to_server, input)
}

#[test]
fn real_sessions_pass_a_gate() {
    for session in sessions() {
        let messages = client_messages(&session, usize::MAX);
        let acted = messages
            .iter()
            .filter(|message| matches!(message, ClientMessage::Input(_)));
        let acted = acted.count();
        let (to_viewer, to_server, input) = through_a_gate(&session, usize::MAX, false);
        assert_eq!(input, 0, "{}: an observer acted", session.name);
        assert_eq!(
            through_a_gate(&session, usize::MAX, true).2,
            acted,
            "{}",
            session.name
        );
        for length in [1, 7, 64] {
            let cut = through_a_gate(&session, length, false);
            assert_eq!(
                cut,
                (to_viewer.clone(), to_server.clone(), 0),
                "{}",
                session.name
            );
        }

        // What is left for the server is valid and asks for pixels only.
        let mut parser = ClientParser::new();
        parser.push(&to_server);
        while let Some(message) = parser.next_message().expect("valid") {
            let observes = !matches!(
                message,
                ClientMessage::Input(_)
                    | ClientMessage::CutText(_)
                    | ClientMessage::ExtendedCutText(_)
                    | ClientMessage::SetDesktopSize { .. }
            );
            assert!(observes, "{}: {message:?} reached the server", session.name);
        }
        assert_eq!(parser.left_over(), 0, "{}", session.name);

        // What is left for the viewer is the server's stream without clipboards.
        let clipboards = clipboard_bytes(&session);
        let sent = session.all(From::Server).len();
        assert_eq!(to_viewer.len() + clipboards, sent, "{}", session.name);
    }
}

/// Bytes of a session's server that are clipboards.
fn clipboard_bytes(session: &Session) -> usize {
    let (_, messages) = server_messages(session, usize::MAX);
    let length = |message: &ServerMessage| match message {
        ServerMessage::CutText(text) | ServerMessage::ExtendedCutText(text) => 8 + text.len(),
        _ => 0,
    };
    messages.iter().map(length).sum()
}

#[test]
fn some_capture_has_small_pixels() {
    let small = |message: &ClientMessage| {
        let eight = |format: &PixelFormat| format.bits_per_pixel == 8;
        matches!(message, ClientMessage::SetPixelFormat(format) if eight(format))
    };
    let has = |session: &Session| client_messages(session, usize::MAX).iter().any(small);
    assert!(sessions().iter().any(has));
}
