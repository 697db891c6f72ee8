use super::*;
use proptest::prelude::*;

/// The body of a message, after checking its head.
fn body(message: &ClipboardMessage, sender: Sender) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode(sender, &mut out).expect("small enough");
    assert_eq!(out[0], message_type(sender));
    let length = i32::from_be_bytes([out[4], out[5], out[6], out[7]]);
    assert_eq!(length, -(out.len() as i32 - 8));
    out.split_off(8)
}

/// A provide message of `parts`, each with its size, compressed without end as TigerVNC does.
fn provide(plain: &[u8]) -> Vec<u8> {
    let mut compress = Compress::new(Compression::best(), true);
    let mut out = (PROVIDE | TEXT).to_be_bytes().to_vec();
    out.reserve(plain.len() + 1024);
    compress
        .compress_vec(plain, &mut out, FlushCompress::Sync)
        .expect("room enough");
    assert_eq!(compress.total_in() as usize, plain.len());
    out
}

fn any_message() -> impl Strategy<Value = ClipboardMessage> {
    prop_oneof![
        any::<[bool; 5]>().prop_flat_map(|[text, request, peek, notify, provide]| {
            any::<u32>().prop_map(move |limit| {
                ClipboardMessage::Caps(Capabilities {
                    text,
                    unasked_text_limit: if text { limit } else { 0 },
                    request,
                    peek,
                    notify,
                    provide,
                })
            })
        }),
        any::<bool>().prop_map(|text| ClipboardMessage::Request { text }),
        Just(ClipboardMessage::Peek),
        any::<bool>().prop_map(|text| ClipboardMessage::Notify { text }),
        Just(ClipboardMessage::Provide(None)),
        "[^\r\0]{0,200}".prop_map(|text| ClipboardMessage::Provide(Some(text))),
    ]
}

proptest! {
    #[test]
    fn messages_round_trip(message in any_message(), client: bool) {
        let sender = if client { Sender::Client } else { Sender::Server };
        prop_assert_eq!(ClipboardMessage::decode(&body(&message, sender)), Ok(message));
    }

    #[test]
    fn any_body_is_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = ClipboardMessage::decode(&bytes);
        let mut provide = (PROVIDE | TEXT).to_be_bytes().to_vec();
        provide.extend(&bytes);
        let _ = ClipboardMessage::decode(&provide);
    }

    #[test]
    fn a_body_cut_anywhere_is_refused(text in "[a-z]{1,50}", cut in 0usize..12) {
        let whole = body(&ClipboardMessage::Provide(Some(text)), Sender::Client);
        prop_assert!(ClipboardMessage::decode(&whole[..cut]).is_err());
    }
}

#[test]
fn the_capabilities_of_xvnc_are_read() {
    // As TigerVNC 1.12 sends them: every action, text, of any size unasked.
    let body = [0x1f, 0, 0, 1, 0, 0, 0, 0];
    let ClipboardMessage::Caps(caps) = ClipboardMessage::decode(&body).expect("valid") else {
        panic!("not capabilities");
    };
    assert!(caps.text && caps.request && caps.peek && caps.notify && caps.provide);
}

#[test]
fn line_ends_are_those_of_each_side() {
    let text = "a\nb\r\nc\rd\ne";
    let sent = body(
        &ClipboardMessage::Provide(Some(text.into())),
        Sender::Client,
    );
    assert_eq!(
        ClipboardMessage::decode(&sent),
        Ok(ClipboardMessage::Provide(Some("a\nb\nc\nd\ne".into())))
    );
    assert_eq!(wire_text("a\nb"), b"a\r\nb\0");
    assert_eq!(classic_text(b"\xe9\r\nx\ry"), "é\nx\ny");
}

#[test]
fn text_is_read_from_a_stream_left_open_and_before_other_formats() {
    let mut parts = 3u32.to_be_bytes().to_vec();
    parts.extend("é\0".as_bytes());
    parts.extend([0, 0, 0, 2, b'{', b'}']);
    assert_eq!(
        ClipboardMessage::decode(&provide(&parts)),
        Ok(ClipboardMessage::Provide(Some("é".into())))
    );
}

#[test]
fn the_limit_holds_exactly() {
    let fits = "a".repeat(TEXT_LIMIT - 1);
    let sent = body(
        &ClipboardMessage::Provide(Some(fits.clone())),
        Sender::Server,
    );
    assert_eq!(
        ClipboardMessage::decode(&sent),
        Ok(ClipboardMessage::Provide(Some(fits.clone())))
    );
    let over = ClipboardMessage::Provide(Some(fits + "a"));
    let mut out = Vec::new();
    assert_eq!(
        over.encode(Sender::Client, &mut out),
        Err(ClipboardError::TooLarge(TEXT_LIMIT as u64 + 1))
    );
    assert!(out.is_empty());
}

#[test]
fn a_bomb_is_not_inflated() {
    let mut announced = (256u32 << 20).to_be_bytes().to_vec();
    announced.resize(64 << 20, 0);
    assert_eq!(
        ClipboardMessage::decode(&provide(&announced)),
        Err(ClipboardError::TooLarge(256 << 20))
    );
    // One that lies about its size yields no more than it announced.
    let mut lied = 5u32.to_be_bytes().to_vec();
    lied.resize(64 << 20, b'x');
    assert_eq!(
        ClipboardMessage::decode(&provide(&lied)),
        Ok(ClipboardMessage::Provide(Some("xxxxx".into())))
    );
    let mut short = 9u32.to_be_bytes().to_vec();
    short.extend(b"four");
    assert_eq!(
        ClipboardMessage::decode(&provide(&short)),
        Err(ClipboardError::Truncated)
    );
}

#[test]
fn several_or_no_actions_are_refused() {
    for flags in [0u32, TEXT, REQUEST | NOTIFY, 1 << 29] {
        assert_eq!(
            ClipboardMessage::decode(&flags.to_be_bytes()),
            Err(ClipboardError::Action(flags))
        );
    }
}
