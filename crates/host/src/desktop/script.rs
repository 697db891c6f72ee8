//! What an agent's action sends to the display, as a list of steps.
//!
//! A script is data: it is built here without any connection and run by the
//! desktop's task, one step at a time, so that a takeover can stop it between
//! any two of them.

use std::time::Duration;

use handover_protocol::Button;
use handover_rfb::input::InputMessage;
use handover_rfb::keys::Keysym;
use handover_rfb::typing::{KeyStroke, PASTE_CHORD};

/// One step of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// One message to the display.
    Input(InputMessage),
    /// Wait until the display has processed everything sent so far.
    Fence,
    /// Wait this long: for programs that need time between two events.
    Wait(Duration),
    /// So many characters of the text are on their way to the display.
    Typed(usize),
    /// Offer this text as the clipboard, press the paste chord, and wait until
    /// an application has taken it.
    Paste(String),
    /// Wait until an application has taken the text that was offered.
    AwaitTaker,
    /// Give the clipboard back to whom it belonged before the paste.
    RestoreClipboard,
}

/// A pointer position in framebuffer pixels.
pub type Point = (u16, u16);

/// Keys sent between two fences. Few, so that a stopped display never
/// has a backlog of keys that would be typed late.
const KEYS_PER_FENCE: usize = 16;

/// Moves between the two ends of a drag. Toolkits start a drag only after they
/// have seen motion, and follow it better in several steps.
const DRAG_MOVES: i32 = 16;

/// Time between two moves of a drag.
const DRAG_PACE: Duration = Duration::from_millis(8);

/// Time after the first press of a drag, and before its release.
const DRAG_HOLD: Duration = Duration::from_millis(30);

/// Time for a program that pastes to have asked for everything it wants.
const SETTLE_PASTE: Duration = Duration::from_millis(40);

/// The bit of a button in a pointer event's mask (RFC 6143, 7.5.5).
fn mask_of(button: Button) -> u8 {
    1 << (button.number() - 1)
}

fn pointer(mask: u8, (x, y): Point) -> Step {
    Step::Input(InputMessage::Pointer { mask, x, y })
}

fn key(keysym: Keysym, down: bool) -> Step {
    Step::Input(keysym.message(down))
}

/// Moves the pointer.
pub fn move_to(at: Point) -> Vec<Step> {
    vec![pointer(0, at), Step::Fence]
}

/// Presses and releases a button `times` times at one place.
pub fn click(at: Point, button: Button, times: usize) -> Vec<Step> {
    let mut steps = vec![pointer(0, at)];
    for _ in 0..times {
        steps.push(pointer(mask_of(button), at));
        steps.push(pointer(0, at));
    }
    steps.push(Step::Fence);
    steps
}

/// Turns the wheel: `dx` steps to the right, `dy` steps down; negative values
/// turn it the other way. RFB knows the wheel as buttons 4 to 7.
pub fn scroll(at: Point, dx: i32, dy: i32) -> Vec<Step> {
    let mut steps = vec![pointer(0, at)];
    let mut turn = |count: i32, positive: u8, negative: u8| {
        let mask = if count > 0 { positive } else { negative };
        for done in 1..=count.unsigned_abs() as usize {
            steps.push(pointer(mask, at));
            steps.push(pointer(0, at));
            if done.is_multiple_of(KEYS_PER_FENCE) {
                steps.push(Step::Fence);
            }
        }
    };
    turn(dy, 1 << 4, 1 << 3);
    turn(dx, 1 << 6, 1 << 5);
    steps.push(Step::Fence);
    steps
}

/// Presses a button at one place and releases it at another.
pub fn drag(from: Point, to: Point, button: Button) -> Vec<Step> {
    let mask = mask_of(button);
    let mut steps = vec![
        pointer(0, from),
        pointer(mask, from),
        Step::Fence,
        Step::Wait(DRAG_HOLD),
    ];
    let between = |a: u16, b: u16, part: i32| {
        let (a, b) = (i32::from(a), i32::from(b));
        u16::try_from(a + (b - a) * part / DRAG_MOVES).unwrap_or(0)
    };
    for part in 1..=DRAG_MOVES {
        let at = (between(from.0, to.0, part), between(from.1, to.1, part));
        steps.push(pointer(mask, at));
        steps.push(Step::Fence);
        steps.push(Step::Wait(DRAG_PACE));
    }
    steps.push(Step::Wait(DRAG_HOLD));
    steps.push(pointer(0, to));
    steps.push(Step::Fence);
    steps
}

/// Presses keys in order and releases them in the opposite order.
pub fn chord(keys: &[Keysym]) -> Vec<Step> {
    let press = keys.iter().map(|&sym| key(sym, true));
    let release = keys.iter().rev().map(|&sym| key(sym, false));
    press.chain(release).chain([Step::Fence]).collect()
}

/// Types keys one after the other.
pub fn keys(strokes: &[KeyStroke]) -> Vec<Step> {
    let mut steps = Vec::with_capacity(strokes.len() * 4);
    for (index, &KeyStroke { keysym, typed }) in strokes.iter().enumerate() {
        let count = index + 1;
        steps.push(key(keysym, true));
        steps.push(Step::Typed(typed));
        steps.push(key(keysym, false));
        if count.is_multiple_of(KEYS_PER_FENCE) || count == strokes.len() {
            steps.push(Step::Fence);
        }
    }
    steps
}

/// Pastes a text as a whole.
pub fn paste(text: String) -> Vec<Step> {
    vec![Step::Paste(text)]
}

/// The part of a paste after the text is offered: the chord that current
/// toolkits and terminals take for it, and the wait for whoever takes it.
pub fn paste_offered(chars: usize) -> Vec<Step> {
    let mut steps = chord(&PASTE_CHORD);
    steps.extend([
        Step::AwaitTaker,
        Step::Typed(chars),
        Step::Fence,
        // Some programs ask more than once for what they paste.
        Step::Wait(SETTLE_PASTE),
        Step::RestoreClipboard,
    ]);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masks(steps: &[Step]) -> Vec<u8> {
        steps
            .iter()
            .filter_map(|step| match step {
                Step::Input(InputMessage::Pointer { mask, .. }) => Some(*mask),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_click_moves_presses_and_releases() {
        let steps = click((3, 4), Button::LEFT, 1);
        assert_eq!(masks(&steps), [0, 1, 0]);
        assert_eq!(steps.last(), Some(&Step::Fence));
    }

    #[test]
    fn positive_scroll_goes_down_and_right() {
        assert_eq!(masks(&scroll((0, 0), 0, 1)), [0, 16, 0]);
        assert_eq!(masks(&scroll((0, 0), 0, -1)), [0, 8, 0]);
        assert_eq!(masks(&scroll((0, 0), 1, 0)), [0, 64, 0]);
        assert_eq!(masks(&scroll((0, 0), -1, 0)), [0, 32, 0]);
    }

    #[test]
    fn a_drag_starts_and_ends_where_asked() {
        let steps = drag((10, 300), (200, 20), Button::LEFT);
        let positions: Vec<_> = steps
            .iter()
            .filter_map(|step| match step {
                Step::Input(InputMessage::Pointer { mask, x, y }) => Some((*mask, *x, *y)),
                _ => None,
            })
            .collect();
        assert_eq!(positions[1], (1, 10, 300));
        assert_eq!(positions[positions.len() - 2], (1, 200, 20));
        assert_eq!(positions[positions.len() - 1], (0, 200, 20));
    }

    #[test]
    fn a_chord_releases_in_the_opposite_order() {
        let steps = chord(&[Keysym(1), Keysym(2)]);
        let sent: Vec<_> = steps
            .iter()
            .filter_map(|step| match step {
                Step::Input(InputMessage::Key { down, keysym }) => Some((*down, *keysym)),
                _ => None,
            })
            .collect();
        assert_eq!(sent, [(true, 1), (true, 2), (false, 2), (false, 1)]);
    }

    #[test]
    fn long_texts_are_fenced_often_and_count_every_character() {
        let strokes: Vec<_> = (1..=40)
            .map(|typed| KeyStroke {
                keysym: Keysym(0x61),
                typed,
            })
            .collect();
        let steps = keys(&strokes);
        let marks: Vec<_> = steps
            .iter()
            .filter_map(|step| match step {
                Step::Typed(count) => Some(*count),
                _ => None,
            })
            .collect();
        assert_eq!(marks, (1..=40).collect::<Vec<_>>());
        let fences = steps.iter().filter(|step| **step == Step::Fence).count();
        assert_eq!(fences, 3);
    }
}
