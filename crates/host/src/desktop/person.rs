//! Input of the person in control, on its way from the gate to the display.

use std::collections::VecDeque;

use handover_control::InputSource;
use handover_rfb::input::InputMessage;

use super::actor::Actor;
use super::input::InputConnection;
use super::view::{ViewerEvent, ViewerEventKind};
use crate::system::clock;

/// Events that may wait for a display that takes none. Beyond it what a person
/// does at a display that does not react is dropped.
const MAX_WAITING: usize = 1024;

/// Input that the display cannot take yet.
#[derive(Debug, Default)]
pub struct WaitingInput(VecDeque<ViewerEvent>);

impl WaitingInput {
    fn push(&mut self, event: ViewerEvent) {
        if let Some(last) = self.0.back_mut()
            && is_same_move(last, &event)
        {
            *last = event;
        } else if self.0.len() < MAX_WAITING {
            self.0.push_back(event);
        }
    }
}

/// True for two moves of a pointer with the same buttons, of which the display
/// need only learn the second.
fn is_same_move(one: &ViewerEvent, other: &ViewerEvent) -> bool {
    let mask = |event: &ViewerEvent| match event.kind {
        ViewerEventKind::Input(InputMessage::Pointer { mask, .. }) => Some(mask),
        _ => None,
    };
    (one.viewer, one.epoch) == (other.viewer, other.epoch)
        && mask(one).is_some()
        && mask(one) == mask(other)
}

impl Actor {
    /// Something comes from a viewer.
    pub(super) fn viewer_event(&mut self, event: ViewerEvent) {
        match event.kind {
            ViewerEventKind::Connected => {
                self.viewers.insert(event.viewer, true);
            }
            ViewerEventKind::Gone => {
                self.viewers.remove(&event.viewer);
                self.waiting
                    .0
                    .retain(|waiting| waiting.viewer != event.viewer);
                self.arbiter.viewer_gone(clock::now(), event.viewer);
            }
            ViewerEventKind::Input(_) | ViewerEventKind::Clipboard(_) => {
                self.waiting.push(event);
                self.deliver_waiting();
            }
        }
    }

    /// Hands on what waits, as far as the display takes it.
    pub(super) fn deliver_waiting(&mut self) {
        while self.acting.takes_viewers()
            && self.input.as_ref().is_none_or(InputConnection::is_ready)
        {
            let Some(event) = self.waiting.0.pop_front() else {
                return;
            };
            self.deliver(event);
        }
    }

    /// A person's input: admitted and written in one step, or dropped.
    fn deliver(&mut self, event: ViewerEvent) {
        if event.epoch != self.arbiter.status().epoch {
            return;
        }
        let source = InputSource::Viewer(event.viewer);
        let outcome = match self.arbiter.human_input(clock::now(), source) {
            Err(denied) => {
                // The usual case is a viewer that learns of its end a moment
                // late; nothing of what was typed is logged.
                tracing::trace!(desktop = %self.id, viewer = %event.viewer, %denied, "dropped");
                return;
            }
            Ok(pass) => match (event.kind, &mut self.input) {
                (ViewerEventKind::Input(message), Some(input)) => input.send_human(pass, message),
                (ViewerEventKind::Clipboard(text), Some(_)) => {
                    let send = self.clipboard.offer(text);
                    self.send_clipboard(send)
                }
                _ => return,
            },
        };
        self.or_lost(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use handover_control::{Epoch, ViewerId};

    fn moved(mask: u8, x: u16) -> ViewerEvent {
        ViewerEvent {
            viewer: ViewerId(1),
            epoch: Epoch(1),
            kind: ViewerEventKind::Input(InputMessage::Pointer { mask, x, y: 0 }),
        }
    }

    #[test]
    fn moves_are_merged_but_never_presses() {
        let mut waiting = WaitingInput::default();
        for event in [moved(0, 1), moved(0, 2), moved(1, 2), moved(0, 2)] {
            waiting.push(event);
        }
        assert_eq!(
            waiting.0,
            [moved(0, 2), moved(1, 2), moved(0, 2)],
            "only the first move is superseded"
        );
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut waiting = WaitingInput::default();
        for index in 0..2 * MAX_WAITING {
            waiting.push(moved((index % 2) as u8, 0));
        }
        assert_eq!(waiting.0.len(), MAX_WAITING);
    }
}
