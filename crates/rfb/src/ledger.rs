//! What one source of input holds down, and how to let go of it.
//!
//! A server releases a key only for a message that mirrors the press: the same kind of message
//! and the same key. Buttons survive even the connection that pressed them. So whoever sends
//! input keeps one ledger a source and, when that source ends, sends what
//! [`Ledger::release`] says.

use crate::input::InputMessage;

/// Most keys that one source can hold. An X keyboard has no more than 248, so beyond this a
/// source is not a keyboard.
pub const HELD_KEYS_LIMIT: usize = 256;

/// The keys and buttons that one source of input holds down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// In the order in which they were pressed, the oldest first.
    held: Vec<Held>,
    mask: u8,
    position: Option<(u16, u16)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Key { keysym: u32 },
    QemuKey { keysym: u32, keycode: u32 },
}

impl Held {
    /// Whether `self` and `other` are the same key to a server, which goes by the place on the
    /// keyboard where there is one and by the keysym otherwise.
    fn same_key(&self, other: &Self) -> bool {
        match (*self, *other) {
            (Self::Key { keysym: a }, Self::Key { keysym: b }) => a == b,
            (
                Self::QemuKey {
                    keysym: a,
                    keycode: at,
                },
                Self::QemuKey {
                    keysym: b,
                    keycode: bt,
                },
            ) => at == bt && (at != 0 || a == b),
            _ => false,
        }
    }

    fn released(self) -> InputMessage {
        match self {
            Self::Key { keysym } => InputMessage::Key {
                down: false,
                keysym,
            },
            Self::QemuKey { keysym, keycode } => InputMessage::QemuKey {
                down: false,
                keysym,
                keycode,
            },
        }
    }
}

impl Ledger {
    /// A ledger of a source that holds nothing and has not pointed anywhere.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes a message that is about to be sent.
    ///
    /// `false` means that the source already holds [`HELD_KEYS_LIMIT`] keys and the press was not
    /// noted: it must not be sent, since nothing would release it.
    #[must_use]
    pub fn record(&mut self, message: &InputMessage) -> bool {
        let (down, key) = match *message {
            InputMessage::Key { down, keysym } => (down, Held::Key { keysym }),
            InputMessage::QemuKey {
                down,
                keysym,
                keycode,
            } => (down, Held::QemuKey { keysym, keycode }),
            InputMessage::Pointer { mask, x, y } => {
                self.mask = mask;
                self.position = Some((x, y));
                return true;
            }
        };
        let place = self.held.iter().position(|held| held.same_key(&key));
        match (down, place) {
            (true, Some(place)) => self.held[place] = key,
            (true, None) if self.held.len() == HELD_KEYS_LIMIT => return false,
            (true, None) => self.held.push(key),
            (false, Some(place)) => {
                self.held.remove(place);
            }
            (false, None) => {}
        }
        true
    }

    /// Lets go of everything: the messages that release each held key, the last pressed first (so
    /// modifiers outlive what they modify), and then every button where the pointer last was.
    /// Nothing is held afterwards; the messages are the caller's to send.
    #[must_use = "the server goes on holding what these messages release"]
    pub fn release(&mut self) -> Vec<InputMessage> {
        let mut messages: Vec<_> = self.held.drain(..).rev().map(Held::released).collect();
        if let (true, Some((x, y))) = (self.mask != 0, self.position) {
            messages.push(InputMessage::Pointer { mask: 0, x, y });
        }
        self.mask = 0;
        messages
    }

    /// Whether neither a key nor a button is held.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.held.is_empty() && self.mask == 0
    }

    /// Where this source last put the pointer, in pixels; `None` before its first pointer event.
    #[must_use]
    pub fn position(&self) -> Option<(u16, u16)> {
        self.position
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// What Xvnc keeps of one connection: keys by place, or by keysym where there is no place,
    /// the two kinds of message apart.
    #[derive(Default)]
    struct Server {
        keys: BTreeMap<(bool, u32), u32>,
        mask: u8,
        at: (u16, u16),
    }

    impl Server {
        fn handle(&mut self, message: &InputMessage) {
            let (down, id, keysym) = match *message {
                InputMessage::Key { down, keysym } => (down, (false, keysym), keysym),
                InputMessage::QemuKey {
                    down,
                    keysym,
                    keycode: 0,
                } => (down, (true, keysym | 1 << 31), keysym),
                InputMessage::QemuKey {
                    down,
                    keysym,
                    keycode,
                } => (down, (true, keycode), keysym),
                InputMessage::Pointer { mask, x, y } => {
                    self.mask = mask;
                    self.at = (x, y);
                    return;
                }
            };
            if down {
                self.keys.insert(id, keysym);
            } else {
                self.keys.remove(&id);
            }
        }
    }

    /// Few keys and places, so that presses and releases meet.
    fn busy_input() -> impl Strategy<Value = InputMessage> {
        prop_oneof![
            (any::<bool>(), 0u32..6).prop_map(|(down, keysym)| InputMessage::Key { down, keysym }),
            (any::<bool>(), 0u32..6, 0u32..4).prop_map(|(down, keysym, keycode)| {
                InputMessage::QemuKey {
                    down,
                    keysym,
                    keycode,
                }
            }),
            (0u8..8, 0u16..3, 0u16..3).prop_map(|(mask, x, y)| InputMessage::Pointer {
                mask,
                x,
                y
            }),
        ]
    }

    proptest! {
        #[test]
        fn release_leaves_a_server_holding_nothing(
            messages in prop::collection::vec(busy_input(), 0..80)
        ) {
            let (mut ledger, mut server) = (Ledger::new(), Server::default());
            for message in &messages {
                prop_assert!(ledger.record(message));
                server.handle(message);
                prop_assert_eq!(ledger.is_clear(), server.keys.is_empty() && server.mask == 0);
            }
            let before = server.at;
            let releases = ledger.release();
            prop_assert_eq!(
                releases.len(),
                server.keys.len() + usize::from(server.mask != 0)
            );
            for message in &releases {
                server.handle(message);
            }
            prop_assert!(server.keys.is_empty());
            prop_assert_eq!(server.mask, 0);
            prop_assert_eq!(server.at, before, "a release never moves the pointer");
            prop_assert!(ledger.is_clear());
            prop_assert!(ledger.release().is_empty());
        }
    }

    #[test]
    fn modifiers_are_released_after_what_they_modify() {
        let mut ledger = Ledger::new();
        for keysym in [0xffe3, 0x63] {
            assert!(ledger.record(&InputMessage::Key { down: true, keysym }));
        }
        let order: Vec<_> = ledger.release();
        assert_eq!(
            order,
            [0x63, 0xffe3].map(|keysym| InputMessage::Key {
                down: false,
                keysym
            })
        );
    }

    #[test]
    fn a_source_that_is_no_keyboard_is_not_followed_for_ever() {
        let mut ledger = Ledger::new();
        for keysym in 0..HELD_KEYS_LIMIT as u32 {
            assert!(ledger.record(&InputMessage::Key { down: true, keysym }));
        }
        let surplus = InputMessage::Key {
            down: true,
            keysym: 0x7777,
        };
        assert!(!ledger.record(&surplus));
        assert!(ledger.record(&InputMessage::Key {
            down: false,
            keysym: 3
        }));
        assert!(ledger.record(&surplus));
        assert_eq!(ledger.release().len(), HELD_KEYS_LIMIT);
    }
}
