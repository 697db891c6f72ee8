//! Sessions in any order, and noise.

use proptest::prelude::*;

use super::*;

/// A step of a session in which formats change at any time.
#[derive(Debug, Clone)]
enum Step {
    Format(u8),
    Fence,
    Request,
    Title,
    /// The server takes so many messages.
    Serve(usize),
    Update(u8, u8),
    /// So many bytes on their way from the server arrive.
    Arrive(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        prop_oneof![Just(8u8), Just(16), Just(32)].prop_map(Step::Format),
        Just(Step::Fence),
        Just(Step::Request),
        Just(Step::Title),
        (1..4usize).prop_map(Step::Serve),
        (0..6u8, 0..6u8).prop_map(|(width, height)| Step::Update(width, height)),
        (1..80usize).prop_map(Step::Arrive),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn a_gate_follows_every_change_of_format(steps in steps()) {
        let mut bench = Bench::new(Upstream::OWN);
        bench.viewer(&[encodings(&[encodings::FENCE, encodings::DESKTOP_NAME]), request()].concat());
        let mut inbox = std::collections::VecDeque::from(bench.take_to_server());
        let mut present = PixelFormat::BGRX;
        let mut sync: Option<Fence> = None;
        let mut on_its_way: Vec<u8> = Vec::new();
        let mut updates = 0;
        for step in steps.into_iter().chain([Step::Serve(usize::MAX), Step::Arrive(usize::MAX)]) {
            match step {
                Step::Format(bits) => bench.viewer(&set_format(bits)),
                Step::Fence => bench.viewer(&fence(SYNC, b"viewer")),
                Step::Request => bench.viewer(&request()),
                Step::Title => bench.title(&format!("title {updates}")),
                Step::Serve(count) => {
                    inbox.extend(bench.take_to_server());
                    for message in inbox.drain(..count.min(inbox.len())) {
                        let answer = sync.take();
                        match message {
                            ClientMessage::SetPixelFormat(format) => present = format,
                            ClientMessage::Fence(asked) if asked.flags == SYNC => {
                                // As TigerVNC: a second one takes the place of the first.
                                prop_assert!(answer.is_none());
                                sync = Some(asked);
                            }
                            ClientMessage::Fence(asked) if asked.is_request() => {
                                asked.answer(&mut on_its_way);
                            }
                            _ => {}
                        }
                        if let Some(asked) = answer {
                            input::fence(input::FENCE_SYNC_NEXT, &asked.payload, &mut on_its_way);
                        }
                    }
                }
                Step::Update(width, height) => {
                    on_its_way.extend(update(&present, width, height));
                    updates += 1;
                }
                Step::Arrive(count) => {
                    let rest = on_its_way.split_off(count.min(on_its_way.len()));
                    bench.server(&std::mem::replace(&mut on_its_way, rest));
                }
            }
            if bench.close == Some(CloseReason::TooManyFormats) {
                return Ok(());
            }
            prop_assert_eq!(bench.close, None);
        }
        prop_assert!(bench.gate.server.at_boundary());
        prop_assert!(bench.gate.formats.is_settled());
        prop_assert_eq!(bench.gate.server.format(), present);
        prop_assert!(!bench.to_viewer.windows(8).any(|window| window == NONCE_PREFIX));
    }

    #[test]
    fn noise_from_both_sides_never_lets_an_observer_act(
        pieces in prop::collection::vec(
            (any::<bool>(), prop::collection::vec(prop_oneof![any::<u8>(), 0..7u8], 0..200)),
            0..20,
        ),
    ) {
        let mut bench = Bench::new(Upstream::OWN);
        for (from_viewer, piece) in pieces {
            if from_viewer {
                bench.viewer(&piece);
            } else {
                bench.server(&piece);
            }
            for message in bench.take_to_server() {
                let harmless = match message {
                    ClientMessage::SetPixelFormat(_)
                    | ClientMessage::UpdateRequest { .. }
                    | ClientMessage::ContinuousUpdates { .. }
                    | ClientMessage::Fence(_) => true,
                    ClientMessage::SetEncodings(list) => {
                        list == Negotiated::from_viewer(&list, true).upstream
                            || list.ends_with(&[encodings::FENCE])
                    }
                    _ => false,
                };
                prop_assert!(harmless);
            }
        }
        prop_assert!(bench.input.is_empty());
    }
}
