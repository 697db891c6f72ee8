//! The gate's side of the clipboard between the desktop and the holder's viewer.
//!
//! The extended clipboard is spoken with the viewer alone: the display server has its own conversation with the host.

use crate::clipboard::{Capabilities, ClipboardMessage, Sender, TEXT_LIMIT, wire_length};

/// What is known while the viewer holds the lease. A new one is made each time, so nothing of one lease is left for
/// the next.
#[derive(Debug, Default)]
pub(super) struct HolderClipboard {
    /// What the viewer can do, once it said so.
    viewer: Option<Capabilities>,
    /// The desktop's clipboard, for when the viewer asks.
    offered: Option<String>,
}

impl HolderClipboard {
    /// Says what the gate can do, which the viewer answers in kind.
    pub(super) fn greet(&mut self, to_viewer: &mut Vec<u8>) {
        say(&ClipboardMessage::Caps(Capabilities::OURS), to_viewer);
    }

    /// The desktop's clipboard changed. A text that is too long for one message counts as none.
    pub(super) fn offer(&mut self, text: Option<String>, to_viewer: &mut Vec<u8>) {
        self.offered = text.filter(|text| wire_length(text) <= TEXT_LIMIT);
        self.announce(to_viewer);
    }

    /// Takes a message of the viewer; returns the text that it handed over, if it did. A message that makes no sense
    /// is ignored: it moves nothing, and a viewer must not die of its owner's clipboard.
    pub(super) fn receive(&mut self, body: &[u8], to_viewer: &mut Vec<u8>) -> Option<String> {
        match ClipboardMessage::decode(body).ok()? {
            ClipboardMessage::Caps(viewer) => {
                self.viewer = Some(viewer);
                if self.offered.is_some() {
                    self.announce(to_viewer);
                }
            }
            // The desktop's applications cannot wait for a person's network, so the text is fetched at once.
            ClipboardMessage::Notify { text: true } => {
                say(&ClipboardMessage::Request { text: true }, to_viewer);
            }
            ClipboardMessage::Notify { text: false } => {}
            ClipboardMessage::Peek => self.notify(to_viewer),
            ClipboardMessage::Request { text: true } => {
                let text = self.offered.clone();
                say(&ClipboardMessage::Provide(text), to_viewer);
            }
            ClipboardMessage::Request { text: false } => {}
            ClipboardMessage::Provide(text) => return text,
        }
        None
    }

    /// Tells a viewer that can be told what the desktop's clipboard holds.
    fn announce(&self, to_viewer: &mut Vec<u8>) {
        match self.viewer {
            Some(viewer) if viewer.notify => self.notify(to_viewer),
            Some(viewer) if viewer.provide && viewer.text => {
                let fits = |text: &&String| {
                    wire_length(text) as u64 <= u64::from(viewer.unasked_text_limit)
                };
                if let Some(text) = self.offered.as_ref().filter(fits) {
                    say(&ClipboardMessage::Provide(Some(text.clone())), to_viewer);
                }
            }
            // Its capabilities come after the greeting; then this is done again.
            _ => {}
        }
    }

    fn notify(&self, to_viewer: &mut Vec<u8>) {
        say(
            &ClipboardMessage::Notify {
                text: self.offered.is_some(),
            },
            to_viewer,
        );
    }
}

/// Appends a message. Nothing that is said here can be too long, because no such text is offered.
fn say(message: &ClipboardMessage, to_viewer: &mut Vec<u8>) {
    let said = message.encode(Sender::Server, to_viewer);
    debug_assert!(said.is_ok());
}

/// Hands the text to a viewer without the extended clipboard, in Latin-1; other characters become `?`.
pub(super) fn classic(text: &str, to_viewer: &mut Vec<u8>) {
    let latin1: Vec<u8> = text
        .chars()
        .map(|character| u8::try_from(character).unwrap_or(b'?'))
        .collect();
    let latin1 = &latin1[..latin1.len().min(crate::framing::CUT_TEXT_LIMIT)];
    to_viewer.extend([3, 0, 0, 0]);
    to_viewer.extend((latin1.len() as u32).to_be_bytes());
    to_viewer.extend(latin1);
}
