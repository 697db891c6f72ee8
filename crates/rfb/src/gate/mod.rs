//! The filter between one viewer and its own connection to the display server.
//!
//! A viewer's messages are taken apart: what asks for pixels goes on to the server, rewritten where it must be; keys,
//! pointer and clipboard come out as [`ViewerInput`] while the viewer holds the lease and are dropped otherwise;
//! nothing else exists. The server's messages pass through by range without being copied, except those that the gate
//! answers or makes itself, which are put in between messages only.

mod clipboard;
mod formats;
mod output;

pub use output::{CloseReason, GateOutput, Segment, ViewerInput};

use crate::encodings::{self, Negotiated};
use crate::framing::{
    ClientMessage, ClientParser, Fence, ServerEvent, ServerMessage, ServerParser,
};
use crate::input::{self, InputMessage};
use crate::{PixelFormat, clipboard as messages};
use clipboard::HolderClipboard;
use formats::{Formats, Marker, NONCE_PREFIX};

/// Most bytes that wait for the end of a server's message to be put behind it.
const HELD_LIMIT: usize = 4 << 20;

/// What is known about the server behind a viewer's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upstream {
    /// The server itself ignores input on this connection.
    pub view_only: bool,
    /// The server answers fences. If not known, it has to show it first by sending one.
    pub fences: bool,
}

impl Upstream {
    /// An Xvnc that the host started, reached with the view-only password.
    pub const OWN: Upstream = Upstream {
        view_only: true,
        fences: true,
    };
    /// Any other RFB server.
    pub const FOREIGN: Upstream = Upstream {
        view_only: false,
        fences: false,
    };
}

/// The filter of one viewer, from the end of both handshakes on.
#[derive(Debug)]
pub struct Gate {
    client: ClientParser,
    server: ServerParser,
    upstream: Upstream,
    negotiated: Negotiated,
    /// The server was sent a list of encodings, so it knows that this connection understands fences.
    introduced: bool,
    formats: Formats,
    /// Update requests that the server has not answered. Servers merge them, so it may be too many, never too few.
    requests: u32,
    /// The viewer has asked for updates, of whatever kind.
    ever_requested: bool,
    /// The viewer has asked for updates without a request for each, so one may be on its way at any time.
    continuous: bool,
    /// A fence of the viewer that is to be handled in one step with its next message, until that comes.
    sync: Option<Fence>,
    holder: bool,
    clipboard: HolderClipboard,
    title: String,
    /// The title that the viewer was told last.
    shown: String,
    /// Messages for the viewer that wait until the server's present message ends.
    held: Vec<u8>,
    /// The same for the clipboard, which must not reach a viewer that lost the lease in the meantime.
    held_clipboard: Vec<u8>,
    closed: bool,
}

impl Gate {
    /// A gate for a viewer that was told `title` as the desktop's name and `format` as its pixel format.
    pub fn new(format: PixelFormat, title: &str, upstream: Upstream) -> Gate {
        Gate {
            client: ClientParser::new(),
            server: ServerParser::new(format),
            upstream,
            negotiated: Negotiated::default(),
            introduced: false,
            formats: Formats::default(),
            requests: 0,
            ever_requested: false,
            continuous: false,
            sync: None,
            holder: false,
            clipboard: HolderClipboard::default(),
            title: title.to_owned(),
            shown: title.to_owned(),
            held: Vec::new(),
            held_clipboard: Vec::new(),
            closed: false,
        }
    }

    /// Takes what the viewer sent.
    pub fn from_viewer(&mut self, input: &[u8], out: &mut GateOutput) {
        if self.closed {
            return;
        }
        self.client.push(input);
        loop {
            match self.client.next_message() {
                Ok(Some(message)) => self.viewer_message(message, out),
                Ok(None) => break,
                Err(error) => self.close(CloseReason::Viewer(error), out),
            }
            // Short requests can have long answers, so this cannot wait for the end of the input.
            if self.is_overfull() {
                self.close(CloseReason::Backlog, out);
            }
            if self.closed {
                return;
            }
        }
        self.put_in(out);
    }

    /// Takes what the server sent. Segments of `out` refer to `input`.
    pub fn from_server(&mut self, input: &[u8], out: &mut GateOutput) {
        let mut at = 0;
        while !self.closed {
            match self.server.next_event(input, &mut at) {
                Ok(Some(ServerEvent::Header(range) | ServerEvent::Payload(range))) => {
                    out.pass(range);
                }
                Ok(Some(ServerEvent::Rectangle(rectangle))) => {
                    // The gate keeps this one for itself, so the server was never offered it.
                    if rectangle.encoding == encodings::DESKTOP_NAME {
                        let error = crate::framing::FramingError::Encoding(rectangle.encoding);
                        self.close(CloseReason::Server(error), out);
                    }
                }
                Ok(Some(ServerEvent::End)) => {
                    self.requests = self.requests.saturating_sub(1);
                    self.put_in(out);
                }
                Ok(Some(ServerEvent::Message(message))) => {
                    self.server_message(message, out);
                    self.put_in(out);
                }
                Ok(None) => {
                    self.put_in(out);
                    break;
                }
                Err(error) => self.close(CloseReason::Server(error), out),
            }
        }
    }

    /// Shows the viewer another title, if it understands changes of the desktop's name.
    pub fn set_title(&mut self, title: &str, out: &mut GateOutput) {
        if self.closed {
            return;
        }
        title.clone_into(&mut self.title);
        self.put_in(out);
    }

    /// Says whether the live lease is bound to this viewer. Only then does its input come out.
    pub fn set_holder(&mut self, holder: bool, out: &mut GateOutput) {
        if self.closed || self.holder == holder {
            return;
        }
        self.holder = holder;
        if holder && self.negotiated.extended_clipboard {
            self.clipboard.greet(&mut self.held_clipboard);
        } else if !holder {
            self.clipboard = HolderClipboard::default();
            self.held_clipboard.clear();
        }
        self.put_in(out);
    }

    /// Tells the holder what the desktop's clipboard holds now; does nothing for anyone else.
    pub fn offer_clipboard(&mut self, text: Option<String>, out: &mut GateOutput) {
        if self.closed || !self.holder {
            return;
        }
        if self.negotiated.extended_clipboard {
            self.clipboard.offer(text, &mut self.held_clipboard);
        } else {
            clipboard::classic(&text.unwrap_or_default(), &mut self.held_clipboard);
        }
        self.put_in(out);
    }

    fn viewer_message(&mut self, message: ClientMessage, out: &mut GateOutput) {
        match message {
            ClientMessage::SetPixelFormat(format) => self.set_pixel_format(format, out),
            ClientMessage::SetEncodings(list) => {
                let knew_clipboard = self.negotiated.extended_clipboard;
                self.negotiated = Negotiated::from_viewer(&list, true);
                if self.holder && self.negotiated.extended_clipboard && !knew_clipboard {
                    self.clipboard.greet(&mut self.held_clipboard);
                }
                self.pass_sync(out);
                self.introduced = true;
                input::set_encodings(&self.negotiated.upstream, &mut out.to_server);
            }
            ClientMessage::UpdateRequest {
                incremental,
                area: [x, y, width, height],
            } => {
                self.requests = self.requests.saturating_add(1);
                self.ever_requested = true;
                self.pass_sync(out);
                input::update_request(incremental, x, y, width, height, &mut out.to_server);
            }
            ClientMessage::ContinuousUpdates {
                enable,
                area: [x, y, width, height],
            } => {
                self.continuous = true;
                self.ever_requested = true;
                self.pass_sync(out);
                input::continuous_updates(enable, x, y, width, height, &mut out.to_server);
            }
            ClientMessage::Fence(fence) => self.viewer_fence(fence, out),
            ClientMessage::Input(event) => {
                if self.holder {
                    self.mirror(event, out);
                    out.input.push(ViewerInput::Input(event));
                }
            }
            ClientMessage::CutText(latin1) => {
                if self.holder {
                    out.input
                        .push(ViewerInput::Clipboard(messages::classic_text(&latin1)));
                }
            }
            ClientMessage::ExtendedCutText(body) => {
                if self.holder && self.negotiated.extended_clipboard {
                    let text = self.clipboard.receive(&body, &mut self.held_clipboard);
                    out.input.extend(text.map(ViewerInput::Clipboard));
                }
            }
            // Nobody may resize or reboot a desktop through a viewer, lock others out of it, or hand over texts
            // without end.
            ClientMessage::SetDesktopSize { .. }
            | ClientMessage::Power
            | ClientMessage::SetServerInput
            | ClientMessage::CutTextTooLong { .. } => {}
        }
    }

    /// Tells the viewer's own connection where its pointer is. The server takes no input from it, but stops drawing
    /// its own pointer for a viewer that moves the pointer itself. No button is ever mirrored.
    fn mirror(&self, event: InputMessage, out: &mut GateOutput) {
        if let InputMessage::Pointer { x, y, .. } = event
            && self.upstream.view_only
        {
            InputMessage::Pointer { mask: 0, x, y }.encode(&mut out.to_server);
        }
    }

    fn viewer_fence(&mut self, fence: Fence, out: &mut GateOutput) {
        if fence.payload.starts_with(NONCE_PREFIX) {
            self.close(CloseReason::ReservedFence, out);
        } else if !self.upstream.fences {
            if fence.is_request() {
                fence.answer(&mut self.held);
            }
        } else if fence.is_request() && fence.flags & input::FENCE_SYNC_NEXT != 0 {
            self.introduce(out);
            // Two of them in a row would overwrite each other in the server; the first one loses its flag.
            if let Some(mut earlier) = self.sync.replace(fence) {
                earlier.flags &= !input::FENCE_SYNC_NEXT;
                earlier.encode(&mut out.to_server);
            }
        } else {
            self.introduce(out);
            self.pass_sync(out);
            fence.encode(&mut out.to_server);
        }
    }

    /// Says that this connection understands fences before the first one is sent, if the viewer has not said yet what
    /// it understands: Xvnc closes a connection to which it would have to send an answer that was not asked for.
    fn introduce(&mut self, out: &mut GateOutput) {
        if !self.introduced {
            self.introduced = true;
            input::set_encodings(&[encodings::FENCE], &mut out.to_server);
        }
    }

    /// Sends the viewer's waiting fence right before the message that it belongs to.
    fn pass_sync(&mut self, out: &mut GateOutput) {
        if let Some(fence) = self.sync.take() {
            fence.encode(&mut out.to_server);
        }
    }

    fn set_pixel_format(&mut self, format: PixelFormat, out: &mut GateOutput) {
        let before = self.server.format();
        let same_lengths = before.bytes_per_pixel() == format.bytes_per_pixel()
            && before.tight_pixel_bytes() == format.tight_pixel_bytes();
        // A server with fences need not be trusted to send exactly one update for each request.
        let nothing_on_its_way =
            !self.ever_requested || !self.upstream.fences && !self.continuous && self.requests == 0;
        if self.formats.is_settled() && (same_lengths || nothing_on_its_way) {
            self.pass_sync(out);
            self.server.set_format(format);
        } else if self.upstream.fences {
            self.introduce(out);
            let marker = Marker {
                format,
                for_viewer: self.sync.take(),
            };
            if !self.formats.announce(marker, &mut out.to_server) {
                self.close(CloseReason::TooManyFormats, out);
                return;
            }
        } else {
            self.close(CloseReason::FormatInFlight, out);
            return;
        }
        input::set_pixel_format(&format, &mut out.to_server);
    }

    fn server_message(&mut self, message: ServerMessage, out: &mut GateOutput) {
        match message {
            ServerMessage::Fence(fence) if fence.is_request() => {
                self.upstream.fences = true;
                if self.negotiated.fence {
                    fence.encode(&mut self.held);
                } else {
                    fence.answer(&mut out.to_server);
                }
            }
            ServerMessage::Fence(fence) if fence.payload.starts_with(NONCE_PREFIX) => {
                if let Some(marker) = self.formats.reached(&fence) {
                    self.server.set_format(marker.format);
                    if let Some(asked) = marker.for_viewer {
                        let flags = fence.flags & asked.flags;
                        input::fence(flags, &asked.payload, &mut self.held);
                    }
                }
            }
            ServerMessage::Fence(fence) => fence.encode(&mut self.held),
            ServerMessage::Bell => self.held.push(2),
            ServerMessage::EndOfContinuousUpdates => self.held.push(150),
            // What is in the clipboard is for the holder, who gets it from the host.
            ServerMessage::CutText(_)
            | ServerMessage::ExtendedCutText(_)
            | ServerMessage::CutTextTooLong { .. } => {}
        }
    }

    /// Puts what waits for the viewer in here, if this is between two of the server's messages.
    fn put_in(&mut self, out: &mut GateOutput) {
        if self.closed {
            return;
        }
        if !self.server.at_boundary() {
            if self.is_overfull() {
                self.close(CloseReason::Backlog, out);
            }
            return;
        }
        if self.negotiated.desktop_name && self.shown != self.title {
            self.shown.clone_from(&self.title);
            name_change(&self.title, &mut self.held);
        }
        self.held.append(&mut self.held_clipboard);
        if !self.held.is_empty() {
            out.to_viewer
                .push(Segment::Owned(std::mem::take(&mut self.held)));
        }
    }

    fn is_overfull(&self) -> bool {
        self.held.len() + self.held_clipboard.len() > HELD_LIMIT
    }

    fn close(&mut self, reason: CloseReason, out: &mut GateOutput) {
        self.closed = true;
        out.close = Some(reason);
    }
}

/// An update of nothing but the desktop's name.
fn name_change(name: &str, out: &mut Vec<u8>) {
    out.extend([0, 0, 0, 1]);
    out.extend([0; 8]);
    out.extend(encodings::DESKTOP_NAME.to_be_bytes());
    out.extend((name.len() as u32).to_be_bytes());
    out.extend(name.as_bytes());
}

#[cfg(test)]
mod tests;
