use super::*;
use proptest::prelude::*;

fn update(rectangles: &[Vec<u8>]) -> Vec<u8> {
    let mut out = vec![0, 0];
    out.extend((rectangles.len() as u16).to_be_bytes());
    out.extend(rectangles.concat());
    out
}

fn rectangle(x: u16, y: u16, width: u16, height: u16, encoding: i32, data: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = [x, y, width, height]
        .iter()
        .flat_map(|value| value.to_be_bytes())
        .collect();
    out.extend(encoding.to_be_bytes());
    out.extend(data);
    out
}

fn feed_all(decoder: &mut FrameDecoder, mut bytes: &[u8]) -> Result<usize, FrameError> {
    let mut updates = 0;
    while decoder.feed(&mut bytes)? {
        updates += 1;
    }
    Ok(updates)
}

#[test]
fn raw_rectangles_land_where_they_belong() {
    let mut decoder = FrameDecoder::new(3, 2).expect("small");
    decoder.begin();
    let left = rectangle(0, 0, 1, 2, RAW, &[1, 2, 3, 0, 4, 5, 6, 0]);
    assert_eq!(feed_all(&mut decoder, &update(&[left])), Ok(1));
    assert!(!decoder.is_complete());
    let right = rectangle(1, 0, 2, 2, RAW, &[9; 16]);
    assert_eq!(feed_all(&mut decoder, &update(&[right])), Ok(1));
    assert!(decoder.is_complete());
    let frame = decoder.frame();
    assert_eq!(
        frame.rgb,
        [3, 2, 1, 9, 9, 9, 9, 9, 9, 6, 5, 4, 9, 9, 9, 9, 9, 9]
    );
    assert!(!frame.is_black());
    decoder.begin();
    assert!(!decoder.is_complete());
}

#[test]
fn a_change_of_size_leaves_the_frame_incomplete() {
    let mut decoder = FrameDecoder::new(1, 1).expect("small");
    decoder.begin();
    let bytes = update(&[
        rectangle(0, 0, 1, 1, RAW, &[7; 4]),
        rectangle(0, 0, 2, 1, DESKTOP_SIZE, &[]),
    ]);
    assert_eq!(feed_all(&mut decoder, &bytes), Ok(1));
    assert_eq!(decoder.size(), (2, 1));
    assert!(!decoder.is_complete());
    let bytes = update(&[
        rectangle(0, 0, 2, 1, RAW, &[8; 8]),
        rectangle(0, 0, 2, 1, DESKTOP_SIZE, &[]),
    ]);
    assert_eq!(feed_all(&mut decoder, &bytes), Ok(1));
    assert!(decoder.is_complete(), "the same size changes nothing");
}

#[test]
fn other_messages_are_passed_over() {
    let mut bytes = vec![2, 150];
    bytes.extend([1, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6]);
    bytes.extend([3, 0, 0, 0, 0, 0, 0, 2, b'h', b'i']);
    bytes.extend([3, 0, 0, 0, 0xff, 0xff, 0xff, 0xfc, 0, 0, 0, 0]);
    bytes.extend([248, 0, 0, 0, 0x80, 0, 0, 1, 1, 42]);
    bytes.extend([3, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(update(&[]));
    let mut decoder = FrameDecoder::new(1, 1).expect("small");
    assert_eq!(feed_all(&mut decoder, &bytes), Ok(1));
}

#[test]
fn what_was_not_asked_for_is_an_error() {
    let mut decoder = FrameDecoder::new(2, 2).expect("small");
    assert_eq!(feed_all(&mut decoder, &[99]), Err(FrameError::Message(99)));
    let mut decoder = FrameDecoder::new(2, 2).expect("small");
    let tight = update(&[rectangle(0, 0, 1, 1, 7, &[])]);
    assert_eq!(feed_all(&mut decoder, &tight), Err(FrameError::Encoding(7)));
    let mut decoder = FrameDecoder::new(2, 2).expect("small");
    let outside = update(&[rectangle(1, 0, u16::MAX, 1, RAW, &[])]);
    assert!(matches!(
        feed_all(&mut decoder, &outside),
        Err(FrameError::OutOfBounds { .. })
    ));
    let mut decoder = FrameDecoder::new(2, 2).expect("small");
    let huge = update(&[rectangle(0, 0, u16::MAX, u16::MAX, DESKTOP_SIZE, &[])]);
    assert!(matches!(
        feed_all(&mut decoder, &huge),
        Err(FrameError::Size { .. })
    ));
    assert!(FrameDecoder::new(0, 5).is_err());
}

proptest! {
    #[test]
    fn chunks_of_any_size_give_the_same_frame(
        pixels in prop::collection::vec(any::<u8>(), 5 * 3 * 4),
        cuts in prop::collection::vec(1usize..20, 1..60),
    ) {
        let mut bytes = vec![2];
        bytes.extend(update(&[
            rectangle(0, 0, 5, 3, RAW, &pixels),
            rectangle(4, 2, 0, 0, RAW, &[]),
            rectangle(0, 0, 5, 3, DESKTOP_SIZE, &[]),
        ]));
        let mut whole = FrameDecoder::new(5, 3).expect("small");
        prop_assert_eq!(feed_all(&mut whole, &bytes), Ok(1));
        let mut pieces = FrameDecoder::new(5, 3).expect("small");
        let (mut updates, mut rest) = (0, &bytes[..]);
        for cut in cuts.into_iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, tail) = rest.split_at(cut.min(rest.len()));
            updates += feed_all(&mut pieces, piece).expect("valid");
            rest = tail;
        }
        prop_assert_eq!(updates, 1);
        prop_assert!(pieces.is_complete());
        prop_assert_eq!(&pieces.frame(), &whole.frame());
        let expected: Vec<u8> = pixels
            .chunks(4)
            .flat_map(|pixel| [pixel[2], pixel[1], pixel[0]])
            .collect();
        prop_assert_eq!(whole.frame().rgb, expected);
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(mut decoder) = FrameDecoder::new(64, 64) {
            let _ = feed_all(&mut decoder, &bytes);
        }
    }
}
