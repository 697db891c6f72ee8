//! Any split of any stream parses the same, and nothing that arrives can make a parser panic or hoard.

use proptest::prelude::*;

use super::*;
use crate::input::InputMessage;
use crate::{PixelFormat, encodings};

/// A server's stream, built message by message, and the events expected of it with ranges left out.
#[derive(Debug, Clone, Default)]
struct Stream {
    bytes: Vec<u8>,
    rectangles: usize,
    messages: Vec<ServerMessage>,
    /// Bytes that pass through.
    passed: Vec<u8>,
}

fn format() -> impl Strategy<Value = PixelFormat> {
    (prop_oneof![Just(8u8), Just(16), Just(32)], any::<bool>()).prop_map(|(bits, deep)| {
        let depth = if deep { bits } else { bits.min(24) };
        PixelFormat {
            bits_per_pixel: bits,
            depth,
            ..PixelFormat::BGRX
        }
    })
}

fn tight_length(length: usize, out: &mut Vec<u8>) {
    match length {
        0..=0x7f => out.push(length as u8),
        0x80..=0x3fff => out.extend([length as u8 | 0x80, (length >> 7) as u8]),
        _ => out.extend([
            length as u8 | 0x80,
            (length >> 7) as u8 | 0x80,
            (length >> 14) as u8,
        ]),
    }
}

/// A tight rectangle's payload in one of the ways of compression.
fn tight(way: u8, area: usize, mask: usize, format: &PixelFormat, data: &[u8]) -> Vec<u8> {
    let pixel = format.tight_pixel_bytes() as usize;
    let mut out = Vec::new();
    let compressed = |before: usize, out: &mut Vec<u8>| {
        if before < 12 {
            out.extend(vec![0xAB; before]);
        } else {
            tight_length(data.len(), out);
            out.extend(data);
        }
    };
    match way {
        0 => {
            out.push(0x00);
            compressed(area * pixel, &mut out);
        }
        1 => {
            out.extend([0x4f, 0]);
            compressed(area * pixel, &mut out);
        }
        2 => {
            out.extend([0x50, 1, 1]);
            out.extend(vec![0xCC; 2 * pixel]);
            compressed(mask, &mut out);
        }
        3 => {
            out.extend([0x60, 1, 16]);
            out.extend(vec![0xCC; 17 * pixel]);
            compressed(area, &mut out);
        }
        4 => {
            out.extend([0x70, 2]);
            compressed(area * pixel, &mut out);
        }
        5 => {
            out.push(0x80);
            out.extend(vec![0xDD; pixel]);
        }
        _ => {
            out.push(0x90);
            tight_length(data.len(), &mut out);
            out.extend(data);
        }
    }
    out
}

/// One rectangle as it goes over the wire.
fn rectangle(format: PixelFormat) -> impl Strategy<Value = Vec<u8>> {
    let data = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        Just(vec![7; 200]),
        Just(vec![8; 20_000]),
    ];
    (0..12u8, 0..7u8, 0..20u16, 0..20u16, data).prop_map(move |(kind, way, w, h, data)| {
        let (width, height) = (usize::from(w), usize::from(h));
        let (area, mask) = (width * height, width.div_ceil(8) * height);
        let pixel = format.bytes_per_pixel() as usize;
        let (encoding, payload) = match kind {
            0 => (encodings::RAW, vec![1; area * pixel]),
            1 => (encodings::COPY_RECT, vec![2; 4]),
            2 => {
                let length = (data.len() as u32).to_be_bytes();
                (encodings::ZRLE, [&length[..], &data].concat())
            }
            3 => (encodings::CURSOR, vec![3; area * pixel + mask]),
            4 if area == 0 => (encodings::X_CURSOR, vec![]),
            4 => (encodings::X_CURSOR, vec![4; 6 + 2 * mask]),
            5 => (
                encodings::CURSOR_WITH_ALPHA,
                [vec![0; 4], vec![5; area * 4]].concat(),
            ),
            6 if way == 0 => (
                encodings::VMWARE_CURSOR,
                [vec![0, 0], vec![9; area * pixel * 2]].concat(),
            ),
            6 if way == 1 => (
                encodings::VMWARE_CURSOR,
                [vec![1, 0], vec![9; area * 4]].concat(),
            ),
            6 => (encodings::DESKTOP_SIZE, vec![]),
            7 => (
                encodings::EXTENDED_DESKTOP_SIZE,
                [vec![2, 0, 0, 0], vec![6; 32]].concat(),
            ),
            8 => (encodings::LED_STATE, vec![7]),
            9 => (encodings::QEMU_KEYS, vec![]),
            _ => (encodings::TIGHT, tight(way, area, mask, &format, &data)),
        };
        let mut out = vec![0, 1, 0, 2];
        out.extend(w.to_be_bytes());
        out.extend(h.to_be_bytes());
        out.extend(encoding.to_be_bytes());
        out.extend(payload);
        out
    })
}

/// One message of a server.
fn server_message(format: PixelFormat) -> impl Strategy<Value = Stream> {
    let update = (
        prop::collection::vec(rectangle(format), 0..4),
        any::<bool>(),
    )
        .prop_map(|(rects, last)| {
            let mut bytes = vec![0, 0];
            bytes.extend(if last { u16::MAX } else { rects.len() as u16 }.to_be_bytes());
            bytes.extend(rects.concat());
            if last {
                bytes.extend([0; 8]);
                bytes.extend(encodings::LAST_RECT.to_be_bytes());
            }
            Stream {
                passed: bytes.clone(),
                bytes,
                rectangles: rects.len(),
                messages: vec![],
            }
        });
    let colours = (0..5u8).prop_map(|colours| {
        let bytes = [
            vec![1, 0, 0, 0, 0, colours],
            vec![9; 6 * usize::from(colours)],
        ]
        .concat();
        Stream {
            passed: bytes.clone(),
            bytes,
            ..Stream::default()
        }
    });
    let text = prop::collection::vec(any::<u8>(), 4..30);
    let control = (0..6u8, any::<u32>(), text).prop_map(|(kind, flags, payload)| {
        let (bytes, message) = match kind {
            0 => {
                let mut bytes = Vec::new();
                input::fence(flags, &payload, &mut bytes);
                (bytes, ServerMessage::Fence(Fence { flags, payload }))
            }
            1 => (vec![2], ServerMessage::Bell),
            2 => (vec![150], ServerMessage::EndOfContinuousUpdates),
            3 => {
                let length = (payload.len() as u32).to_be_bytes();
                (
                    [&[3, 0, 0, 0][..], &length, &payload].concat(),
                    ServerMessage::CutText(payload),
                )
            }
            4 => {
                let length = (-(payload.len() as i32)).to_be_bytes();
                let bytes = [&[3, 0, 0, 0][..], &length, &payload].concat();
                (bytes, ServerMessage::ExtendedCutText(payload))
            }
            _ => {
                let length = (CUT_TEXT_LIMIT + 1) as u32;
                let text = vec![b'x'; CUT_TEXT_LIMIT + 1];
                let bytes = [&[3, 0, 0, 0][..], &length.to_be_bytes(), &text].concat();
                (
                    bytes,
                    ServerMessage::CutTextTooLong {
                        length: u64::from(length),
                    },
                )
            }
        };
        Stream {
            bytes,
            messages: vec![message],
            ..Stream::default()
        }
    });
    prop_oneof![8 => update, 1 => colours, 3 => control]
}

fn server_stream() -> impl Strategy<Value = (PixelFormat, Stream)> {
    format().prop_flat_map(|format| {
        prop::collection::vec(server_message(format), 1..6).prop_map(move |parts| {
            let mut all = Stream::default();
            for part in parts {
                all.bytes.extend(part.bytes);
                all.passed.extend(part.passed);
                all.rectangles += part.rectangles;
                all.messages.extend(part.messages);
            }
            (format, all)
        })
    })
}

/// Parses a stream in the given pieces and puts together what came out.
fn parse_server(format: PixelFormat, pieces: &[&[u8]]) -> Result<(Stream, bool), FramingError> {
    let mut parser = ServerParser::new(format);
    let mut seen = Stream::default();
    for piece in pieces {
        let mut at = 0;
        while let Some(event) = parser.next_event(piece, &mut at)? {
            match event {
                ServerEvent::Header(range) | ServerEvent::Payload(range) => {
                    seen.passed.extend(&piece[range]);
                }
                ServerEvent::Rectangle(_) => seen.rectangles += 1,
                ServerEvent::End => assert!(parser.at_boundary()),
                ServerEvent::Message(message) => {
                    assert!(parser.at_boundary());
                    seen.messages.push(message);
                }
            }
        }
        assert_eq!(at, piece.len());
        seen.bytes.extend(*piece);
    }
    Ok((seen, parser.at_boundary()))
}

/// Cuts `bytes` at the given places, taken modulo its length.
fn cut<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.sort_unstable();
    cuts.push(bytes.len());
    let mut start = 0;
    cuts.into_iter()
        .map(|end| &bytes[std::mem::replace(&mut start, end)..end])
        .collect()
}

fn client_message() -> impl Strategy<Value = (Vec<u8>, ClientMessage)> {
    let area = any::<[u16; 4]>();
    let text = prop::collection::vec(any::<u8>(), 4..50);
    (0..13u8, any::<bool>(), area, any::<[u32; 2]>(), text).prop_map(
        |(kind, flag, area, numbers, text)| {
            let mut bytes = Vec::new();
            let event = match kind {
                4 => InputMessage::Key {
                    down: flag,
                    keysym: numbers[0],
                },
                5 => InputMessage::Pointer {
                    mask: numbers[0] as u8,
                    x: area[0],
                    y: area[1],
                },
                _ => InputMessage::QemuKey {
                    down: flag,
                    keysym: numbers[0],
                    keycode: numbers[1],
                },
            };
            let areas = area.map(u16::to_be_bytes).concat();
            let message = match kind {
                0 => {
                    input::set_pixel_format(&PixelFormat::BGRX, &mut bytes);
                    ClientMessage::SetPixelFormat(PixelFormat::BGRX)
                }
                1 => {
                    let list: Vec<i32> = text.iter().map(|byte| -i32::from(*byte)).collect();
                    input::set_encodings(&list, &mut bytes);
                    ClientMessage::SetEncodings(list)
                }
                2 => {
                    bytes.extend([3, u8::from(flag)]);
                    bytes.extend(areas);
                    ClientMessage::UpdateRequest {
                        incremental: flag,
                        area,
                    }
                }
                3 => {
                    bytes.extend([150, u8::from(flag)]);
                    bytes.extend(areas);
                    ClientMessage::ContinuousUpdates { enable: flag, area }
                }
                4..=6 => {
                    event.encode(&mut bytes);
                    ClientMessage::Input(event)
                }
                7 => {
                    bytes.extend([6, 0, 0, 0]);
                    bytes.extend((text.len() as i32).to_be_bytes());
                    bytes.extend(&text);
                    ClientMessage::CutText(text)
                }
                8 => {
                    bytes.extend([6, 0, 0, 0]);
                    bytes.extend((-(text.len() as i32)).to_be_bytes());
                    bytes.extend(&text);
                    ClientMessage::ExtendedCutText(text)
                }
                9 => {
                    let fence = Fence {
                        flags: numbers[0],
                        payload: text,
                    };
                    fence.encode(&mut bytes);
                    ClientMessage::Fence(fence)
                }
                10 => {
                    bytes.extend([251, 0]);
                    bytes.extend(&areas[..4]);
                    bytes.extend([2, 0]);
                    bytes.extend([0; 32]);
                    ClientMessage::SetDesktopSize {
                        width: area[0],
                        height: area[1],
                    }
                }
                11 => {
                    bytes.extend([250, 0, 1, 2]);
                    ClientMessage::Power
                }
                _ => {
                    bytes.extend([9, 1, 0, 0]);
                    ClientMessage::SetServerInput
                }
            };
            (bytes, message)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_servers_stream_parses_the_same_however_it_is_cut(
        (format, stream) in server_stream(),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let (seen, whole) = parse_server(format, &cut(&stream.bytes, &cuts)).expect("valid");
        prop_assert!(whole);
        prop_assert_eq!(seen.rectangles, stream.rectangles);
        prop_assert_eq!(&seen.messages, &stream.messages);
        prop_assert!(seen.passed == stream.passed);
    }

    #[test]
    fn a_viewers_stream_parses_the_same_however_it_is_cut(
        stream in prop::collection::vec(client_message(), 1..8),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let bytes: Vec<u8> = stream.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let mut parser = ClientParser::new();
        let mut seen = Vec::new();
        for piece in cut(&bytes, &cuts) {
            parser.push(piece);
            while let Some(message) = parser.next_message().expect("valid") {
                seen.push(message);
            }
        }
        prop_assert_eq!(parser.left_over(), 0);
        prop_assert_eq!(seen, stream.into_iter().map(|(_, message)| message).collect::<Vec<_>>());
    }

    #[test]
    fn noise_from_a_server_is_followed_or_refused(
        noise in prop::collection::vec(prop_oneof![any::<u8>(), 0..4u8], 0..300),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
    ) {
        let together = parse_server(PixelFormat::BGRX, &[&noise]).map(|(seen, _)| seen.passed);
        let apart = parse_server(PixelFormat::BGRX, &cut(&noise, &cuts)).map(|(seen, _)| seen.passed);
        prop_assert_eq!(together, apart);
    }

    #[test]
    fn noise_from_a_viewer_is_followed_or_refused(
        noise in prop::collection::vec(prop_oneof![any::<u8>(), 0..7u8], 0..300),
    ) {
        let mut parser = ClientParser::new();
        for piece in noise.chunks(97) {
            parser.push(piece);
            loop {
                match parser.next_message() {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(error) => {
                        prop_assert_eq!(parser.next_message(), Err(error));
                        return Ok(());
                    }
                }
            }
            prop_assert!(parser.left_over() <= CUT_TEXT_LIMIT + 8);
        }
    }
}

fn client_error(bytes: &[u8]) -> Option<FramingError> {
    let mut parser = ClientParser::new();
    parser.push(bytes);
    parser.next_message().err()
}

#[test]
fn messages_that_are_never_allowed_name_their_type() {
    for kind in [
        1, 7, 8, 10, 11, 12, 13, 15, 20, 21, 80, 127, 128, 130, 249, 252, 253, 254,
    ] {
        assert_eq!(client_error(&[kind]), Some(FramingError::Message(kind)));
    }
    assert_eq!(client_error(&[255, 1]), Some(FramingError::QemuMessage(1)));
}

#[test]
fn a_length_over_its_limit_is_refused_before_the_body_comes() {
    let too_long = |bytes: &[u8]| matches!(client_error(bytes), Some(FramingError::TooLong { .. }));
    assert!(too_long(&[2, 0, 0x04, 0x01]));
    assert!(too_long(&[248, 0, 0, 0, 0, 0, 0, 0, 65]));
    let short = client_error(&[6, 0, 0, 0, 0xff, 0xff, 0xff, 0xfd]);
    assert_eq!(
        short,
        Some(FramingError::TooShort("an extended clipboard message"))
    );
}

#[test]
fn a_server_cannot_use_what_was_not_negotiated() {
    let error = |bytes: &[u8]| parse_server(PixelFormat::BGRX, &[bytes]).err();
    assert_eq!(error(&[250]), Some(FramingError::Message(250)));
    let hextile = [&[0, 0, 0, 1][..], &[0; 8], &[0, 0, 0, 5]].concat();
    assert_eq!(error(&hextile), Some(FramingError::Encoding(5)));
    let tight_png = [&[0, 0, 0, 1][..], &[0; 8], &[0, 0, 0, 7, 0xa0]].concat();
    assert_eq!(
        error(&tight_png),
        Some(FramingError::TightCompression(0xa0))
    );
    let fence = [248, 0, 0, 0, 0, 0, 0, 0, 65];
    assert!(matches!(error(&fence), Some(FramingError::TooLong { .. })));
}

#[test]
fn a_clipboard_over_the_limit_is_skipped_without_being_kept() {
    let length = CUT_TEXT_LIMIT + 5;
    let mut bytes = vec![6, 0, 0, 0];
    bytes.extend((length as u32).to_be_bytes());
    bytes.extend(vec![b'x'; length]);
    InputMessage::Key {
        down: true,
        keysym: 65,
    }
    .encode(&mut bytes);
    let mut parser = ClientParser::new();
    let mut seen = Vec::new();
    for piece in bytes.chunks(1000) {
        parser.push(piece);
        while let Some(message) = parser.next_message().expect("valid") {
            seen.push(message);
        }
        assert!(parser.left_over() <= 1000);
    }
    let key = ClientMessage::Input(InputMessage::Key {
        down: true,
        keysym: 65,
    });
    assert_eq!(
        seen,
        [
            ClientMessage::CutTextTooLong {
                length: length as u64
            },
            key
        ]
    );
}
