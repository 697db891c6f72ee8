//! What passes a gate, what does not, and that neither depends on how streams are cut.

mod random;

use super::*;
use crate::clipboard::{ClipboardMessage, Sender};

/// A gate with what came out of it so far.
struct Bench {
    gate: Gate,
    to_viewer: Vec<u8>,
    to_server: Vec<u8>,
    input: Vec<ViewerInput>,
    close: Option<CloseReason>,
}

impl Bench {
    fn new(upstream: Upstream) -> Bench {
        Bench {
            gate: Gate::new(PixelFormat::BGRX, "d1", upstream),
            to_viewer: Vec::new(),
            to_server: Vec::new(),
            input: Vec::new(),
            close: None,
        }
    }

    fn run(&mut self, input: &[u8], act: impl FnOnce(&mut Gate, &mut GateOutput)) {
        let mut out = GateOutput::default();
        act(&mut self.gate, &mut out);
        for segment in &out.to_viewer {
            self.to_viewer.extend(segment.bytes(input));
        }
        self.to_server.append(&mut out.to_server);
        self.input.append(&mut out.input);
        self.close = self.close.or(out.close);
    }

    fn viewer(&mut self, input: &[u8]) {
        self.run(input, |gate, out| gate.from_viewer(input, out));
    }

    fn server(&mut self, input: &[u8]) {
        self.run(input, |gate, out| gate.from_server(input, out));
    }

    fn holder(&mut self, holder: bool) {
        self.run(&[], |gate, out| gate.set_holder(holder, out));
    }

    fn title(&mut self, title: &str) {
        self.run(&[], |gate, out| gate.set_title(title, out));
    }

    fn offer(&mut self, text: &str) {
        self.run(&[], |gate, out| {
            gate.offer_clipboard(Some(text.into()), out)
        });
    }

    /// Takes what the server was sent, message by message.
    fn take_to_server(&mut self) -> Vec<ClientMessage> {
        let mut parser = ClientParser::new();
        parser.push(&std::mem::take(&mut self.to_server));
        let mut all = Vec::new();
        while let Some(message) = parser
            .next_message()
            .expect("the gate sends valid messages")
        {
            all.push(message);
        }
        assert_eq!(parser.left_over(), 0);
        all
    }
}

fn encoded(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn encodings(list: &[i32]) -> Vec<u8> {
    encoded(|out| input::set_encodings(list, out))
}

fn format(bits_per_pixel: u8) -> PixelFormat {
    PixelFormat {
        bits_per_pixel,
        depth: bits_per_pixel.min(24),
        ..PixelFormat::BGRX
    }
}

fn set_format(bits_per_pixel: u8) -> Vec<u8> {
    encoded(|out| input::set_pixel_format(&format(bits_per_pixel), out))
}

fn request() -> Vec<u8> {
    encoded(|out| input::update_request(true, 0, 0, 4, 4, out))
}

fn fence(flags: u32, payload: &[u8]) -> Vec<u8> {
    encoded(|out| input::fence(flags, payload, out))
}

/// An update of one raw rectangle.
fn update(format: &PixelFormat, width: u8, height: u8) -> Vec<u8> {
    let mut out = vec![0, 0, 0, 1, 0, 0, 0, 0, 0, width, 0, height, 0, 0, 0, 0];
    // Bytes that read as messages of all kinds if a parser is ever out of step.
    let pixels = usize::from(width) * usize::from(height) * format.bytes_per_pixel() as usize;
    out.extend((0..pixels).map(|at| [248, 3, 0, 77][at % 4]));
    out
}

fn key(keysym: u32) -> InputMessage {
    InputMessage::Key { down: true, keysym }
}

fn bytes_of(message: InputMessage) -> Vec<u8> {
    encoded(|out| message.encode(out))
}

/// One of everything that a viewer may say and an observer must not achieve.
fn all_input() -> Vec<u8> {
    let mut out = bytes_of(key(65));
    InputMessage::QemuKey {
        down: true,
        keysym: 65,
        keycode: 30,
    }
    .encode(&mut out);
    InputMessage::Pointer {
        mask: 1,
        x: 7,
        y: 8,
    }
    .encode(&mut out);
    input::cut_text("mine", &mut out);
    let provide = ClipboardMessage::Provide(Some("mine".into()));
    provide.encode(Sender::Client, &mut out).expect("short");
    out.extend([251, 0, 4, 0, 3, 0, 1, 0]);
    out.extend([0; 16]);
    out.extend([250, 0, 1, 2]);
    out.extend([9, 1, 0, 0]);
    out
}

const SYNC: u32 = input::FENCE_REQUEST | input::FENCE_SYNC_NEXT;

#[test]
fn an_observer_achieves_nothing_and_stays_connected() {
    let mut bench = Bench::new(Upstream::OWN);
    bench.viewer(&[encodings(&[encodings::EXTENDED_CLIPBOARD]), all_input()].concat());
    bench.offer("the desktop's");
    bench.server(b"\x03\0\0\0\0\0\0\x02hi");
    assert_eq!(bench.input, []);
    assert_eq!(bench.close, None);
    assert_eq!(bench.to_viewer, b"");
    let list = vec![encodings::FENCE];
    assert_eq!(bench.take_to_server(), [ClientMessage::SetEncodings(list)]);
}

#[test]
fn a_holders_input_comes_out_and_only_its_place_is_mirrored() {
    let mut bench = Bench::new(Upstream::OWN);
    bench.holder(true);
    bench.viewer(&all_input());
    let place = InputMessage::Pointer {
        mask: 0,
        x: 7,
        y: 8,
    };
    assert_eq!(bench.take_to_server(), [ClientMessage::Input(place)]);
    assert_eq!(
        bench.input,
        [
            ViewerInput::Input(key(65)),
            ViewerInput::Input(InputMessage::QemuKey {
                down: true,
                keysym: 65,
                keycode: 30
            }),
            ViewerInput::Input(InputMessage::Pointer {
                mask: 1,
                x: 7,
                y: 8
            }),
            ViewerInput::Clipboard("mine".into()),
        ]
    );
    bench.holder(false);
    bench.input.clear();
    bench.viewer(&all_input());
    assert_eq!((bench.input.len(), bench.take_to_server().len()), (0, 0));
}

#[test]
fn nothing_is_mirrored_to_a_server_that_would_take_it() {
    let mut bench = Bench::new(Upstream::FOREIGN);
    bench.holder(true);
    bench.viewer(&all_input());
    assert_eq!(bench.take_to_server(), []);
}

#[test]
fn what_is_not_allowed_closes_with_its_type() {
    let mut bench = Bench::new(Upstream::OWN);
    bench.viewer(&[request(), vec![7, 1, 2, 3], request()].concat());
    let error = crate::framing::FramingError::Message(7);
    assert_eq!(bench.close, Some(CloseReason::Viewer(error)));
    assert_eq!(bench.take_to_server().len(), 1);
    bench.viewer(&request());
    bench.server(&[2]);
    assert_eq!((bench.to_server.len(), bench.to_viewer.len()), (0, 0));
}

#[test]
fn a_server_that_names_the_desktop_itself_is_not_passed_on() {
    let mut bench = Bench::new(Upstream::OWN);
    bench.server(&encoded(|out| name_change("fake", out)));
    assert!(matches!(bench.close, Some(CloseReason::Server(_))));
}

#[test]
fn fences_that_the_viewer_does_not_know_are_answered_for_it() {
    let mut bench = Bench::new(Upstream::OWN);
    bench.viewer(&encodings(&[encodings::RAW]));
    bench.to_server.clear();
    bench.server(&fence(
        input::FENCE_REQUEST | input::FENCE_BLOCK_BEFORE,
        b"rtt",
    ));
    assert_eq!(bench.to_server, fence(input::FENCE_BLOCK_BEFORE, b"rtt"));
    assert_eq!(bench.to_viewer, b"");

    bench.viewer(&encodings(&[encodings::FENCE]));
    bench.to_server.clear();
    let asked = fence(input::FENCE_REQUEST, b"rtt");
    bench.server(&asked);
    assert_eq!(bench.to_viewer, asked);
    bench.viewer(&fence(0, b"rtt"));
    assert_eq!(bench.to_server, fence(0, b"rtt"));
}

#[test]
fn a_server_is_told_of_fences_before_it_is_sent_one() {
    for early in [
        fence(input::FENCE_REQUEST, b"x"),
        [request(), set_format(8)].concat(),
    ] {
        let mut bench = Bench::new(Upstream::OWN);
        bench.viewer(&early);
        let sent = bench.take_to_server();
        let told = sent
            .iter()
            .position(|message| *message == ClientMessage::SetEncodings(vec![encodings::FENCE]));
        let fenced = sent
            .iter()
            .position(|message| matches!(message, ClientMessage::Fence(_)));
        assert!(told.is_some() && told < fenced, "{sent:?}");
    }
}

#[test]
fn a_server_without_fences_is_never_sent_one() {
    let mut bench = Bench::new(Upstream::FOREIGN);
    bench.viewer(&fence(
        input::FENCE_REQUEST | input::FENCE_BLOCK_AFTER,
        b"mine",
    ));
    assert_eq!(bench.to_server, b"");
    assert_eq!(bench.to_viewer, fence(input::FENCE_BLOCK_AFTER, b"mine"));

    bench.viewer(&[request(), set_format(8)].concat());
    assert_eq!(bench.close, Some(CloseReason::FormatInFlight));
}

#[test]
fn a_server_without_fences_changes_formats_between_updates() {
    let mut bench = Bench::new(Upstream::FOREIGN);
    bench.viewer(&request());
    bench.server(&update(&PixelFormat::BGRX, 2, 2));
    bench.viewer(&[set_format(8), request()].concat());
    bench.server(&[update(&format(8), 3, 3), vec![2]].concat());
    assert_eq!(bench.close, None);
    assert!(bench.gate.server.at_boundary());
}

#[test]
fn the_first_format_needs_no_fence() {
    let mut bench = Bench::new(Upstream::OWN);
    bench.viewer(&[set_format(8), request()].concat());
    assert_eq!(bench.take_to_server().len(), 2);
    bench.server(&update(&format(8), 5, 5));
    assert!(bench.gate.server.at_boundary());
}

#[test]
fn a_viewers_own_fence_before_a_format_is_replaced_and_answered() {
    let mut bench = Bench::new(Upstream::OWN);
    bench.viewer(&[encodings(&[]), request()].concat());
    bench.take_to_server();
    bench.viewer(&[fence(SYNC, b"viewer"), bytes_of(key(65)), set_format(8)].concat());
    let sent = bench.take_to_server();
    let [ClientMessage::Fence(ours), ClientMessage::SetPixelFormat(_)] = &sent[..] else {
        panic!("expected one fence and the change, not {sent:?}");
    };
    assert!(ours.payload.starts_with(NONCE_PREFIX));

    let before = update(&PixelFormat::BGRX, 3, 3);
    let after = update(&format(8), 3, 3);
    let answer = fence(input::FENCE_SYNC_NEXT, &ours.payload);
    bench.server(&[&before[..], &answer, &after].concat());
    let expected = [
        &before[..],
        &fence(input::FENCE_SYNC_NEXT, b"viewer"),
        &after,
    ]
    .concat();
    assert_eq!(bench.to_viewer, expected);
}

#[test]
fn a_waiting_fence_goes_right_before_the_next_message_that_passes() {
    let mut bench = Bench::new(Upstream::OWN);
    bench.viewer(&encodings(&[]));
    bench.take_to_server();
    bench.viewer(&[fence(SYNC, b"a"), fence(SYNC, b"b"), bytes_of(key(65))].concat());
    let plain = Fence {
        flags: input::FENCE_REQUEST,
        payload: b"a".into(),
    };
    assert_eq!(bench.take_to_server(), [ClientMessage::Fence(plain)]);
    bench.viewer(&request());
    let sent = bench.take_to_server();
    let expected = Fence {
        flags: SYNC,
        payload: b"b".into(),
    };
    assert_eq!((sent.len(), &sent[0]), (2, &ClientMessage::Fence(expected)));
}

#[test]
fn fences_that_look_like_the_gates_are_refused() {
    let mut bench = Bench::new(Upstream::OWN);
    bench.viewer(&fence(SYNC, b"handover\0\0\0\0\0\0\0\0"));
    assert_eq!(bench.close, Some(CloseReason::ReservedFence));
}

#[test]
fn formats_without_end_close() {
    let mut bench = Bench::new(Upstream::OWN);
    bench.viewer(&request());
    for _ in 0..40 {
        bench.viewer(&set_format(8));
    }
    assert_eq!(bench.close, Some(CloseReason::TooManyFormats));
}

#[test]
fn the_title_is_put_between_messages_and_only_the_last_one_counts() {
    let mut bench = Bench::new(Upstream::OWN);
    bench.title("unseen");
    assert_eq!(bench.to_viewer, b"");
    bench.viewer(&encodings(&[encodings::DESKTOP_NAME]));
    let first = encoded(|out| name_change("unseen", out));
    assert_eq!(bench.to_viewer, first);

    let update = update(&PixelFormat::BGRX, 3, 3);
    bench.to_viewer.clear();
    bench.server(&update[..1]);
    bench.title("agent");
    bench.server(&update[1..20]);
    bench.title("human");
    assert_eq!(bench.to_viewer, update[..20]);
    bench.server(&update[20..]);
    let name = encoded(|out| name_change("human", out));
    assert_eq!(bench.to_viewer, [update, name].concat());
}

#[test]
fn a_classic_viewer_gets_latin_1() {
    let mut bench = Bench::new(Upstream::OWN);
    bench.holder(true);
    bench.offer("é漢");
    assert_eq!(bench.to_viewer, b"\x03\0\0\0\0\0\0\x02\xe9?");
}

#[test]
fn what_was_offered_to_a_holder_does_not_reach_it_afterwards() {
    let mut bench = Bench::new(Upstream::OWN);
    let update = update(&PixelFormat::BGRX, 3, 3);
    bench.holder(true);
    bench.server(&update[..9]);
    bench.offer("secret");
    bench.holder(false);
    bench.server(&update[9..]);
    assert_eq!(bench.to_viewer, update);
}

/// The messages of the extended clipboard that a viewer was sent.
fn take_clipboard(bench: &mut Bench) -> Vec<ClipboardMessage> {
    let bytes = std::mem::take(&mut bench.to_viewer);
    let mut parser = ServerParser::new(PixelFormat::BGRX);
    let (mut at, mut all) = (0, Vec::new());
    while let Some(event) = parser.next_event(&bytes, &mut at).expect("valid") {
        if let ServerEvent::Message(ServerMessage::ExtendedCutText(body)) = event {
            all.push(ClipboardMessage::decode(&body).expect("valid"));
        }
    }
    all
}

#[test]
fn the_extended_clipboard_is_spoken_with_the_holder() {
    use crate::clipboard::Capabilities;
    let say = |message: ClipboardMessage| {
        encoded(|out| message.encode(Sender::Client, out).expect("short"))
    };
    let caps = ClipboardMessage::Caps(Capabilities::OURS);
    let mut bench = Bench::new(Upstream::OWN);
    bench.viewer(&encodings(&[encodings::EXTENDED_CLIPBOARD]));
    bench.holder(true);
    bench.offer("from the desktop 漢");
    assert_eq!(take_clipboard(&mut bench), std::slice::from_ref(&caps));

    bench.viewer(&say(caps));
    assert_eq!(
        take_clipboard(&mut bench),
        [ClipboardMessage::Notify { text: true }]
    );
    bench.viewer(&say(ClipboardMessage::Request { text: true }));
    let provided = ClipboardMessage::Provide(Some("from the desktop 漢".into()));
    assert_eq!(take_clipboard(&mut bench), [provided]);

    bench.viewer(&say(ClipboardMessage::Notify { text: true }));
    assert_eq!(
        take_clipboard(&mut bench),
        [ClipboardMessage::Request { text: true }]
    );
    bench.viewer(&say(ClipboardMessage::Provide(Some(
        "from the person 😀".into(),
    ))));
    assert_eq!(
        bench.input,
        [ViewerInput::Clipboard("from the person 😀".into())]
    );

    // Nothing of it is left for the next lease.
    bench.holder(false);
    bench.viewer(&say(ClipboardMessage::Request { text: true }));
    assert_eq!(take_clipboard(&mut bench), []);
    bench.holder(true);
    take_clipboard(&mut bench);
    bench.viewer(&say(ClipboardMessage::Peek));
    assert_eq!(
        take_clipboard(&mut bench),
        [ClipboardMessage::Notify { text: false }]
    );
}

#[test]
fn short_requests_for_long_texts_have_an_end() {
    let mut bench = Bench::new(Upstream::OWN);
    bench.viewer(&encodings(&[encodings::EXTENDED_CLIPBOARD]));
    bench.holder(true);
    let noise: String = (0..200_000u32)
        .filter_map(|at| char::from_u32(0x3400 + at.wrapping_mul(2_654_435_761) % 0x5000))
        .collect();
    bench.offer(&noise);
    let request = ClipboardMessage::Request { text: true };
    let one = encoded(|out| request.encode(Sender::Client, out).expect("short"));
    bench.viewer(&one.repeat(1000));
    assert_eq!(bench.close, Some(CloseReason::Backlog));
}
