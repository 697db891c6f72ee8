//! The host's own full connection to a display: the only way by which input
//! reaches it.
//!
//! Everything is written without waiting. A message goes out only when the
//! kernel has taken the one before it, the kernel's buffer is as small as it can
//! be, and few messages are ahead of the display's last answer. So what a
//! stopped display would still process late is little, and it is all from
//! before the fence that has to answer before control moves.

use std::collections::VecDeque;
use std::io;

use handover_control::{AgentPass, HumanPass};
use handover_rfb::clipboard::{Capabilities, ClipboardMessage, Sender};
use handover_rfb::encodings::{
    DESKTOP_SIZE, EXTENDED_CLIPBOARD, EXTENDED_DESKTOP_SIZE, FENCE, LAST_RECT, LED_STATE, QEMU_KEYS,
};
use handover_rfb::framing::{ServerEvent, ServerMessage, ServerParser};
use handover_rfb::handshake::Credentials;
use handover_rfb::input::{self, InputMessage};
use handover_rfb::keys::Keysym;
use handover_rfb::ledger::Ledger;

use crate::display::connect::HANDSHAKE_WITHIN;
use crate::display::{ConnectError, Stream, Upstream, connect};

/// Messages that may be ahead of the display's last answer.
const MAX_UNFENCED: u64 = 32;

/// A fence is asked for after so many messages, so that the answer is usually
/// there before [`MAX_UNFENCED`] is reached.
const FENCE_EVERY: u64 = 16;

/// Bytes that may wait for the kernel: releases, fences and one clipboard text.
/// Beyond it the display is taken for dead.
const MAX_WAITING_BYTES: usize = 4 << 20;

/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;

/// Encodings that the connection asks for: none for pixels, of which it wants
/// none, and those that make the display take the other messages.
const ENCODINGS: [i32; 6] = [
    QEMU_KEYS,
    FENCE,
    DESKTOP_SIZE,
    EXTENDED_DESKTOP_SIZE,
    LAST_RECT,
    EXTENDED_CLIPBOARD,
];

/// A key that has no effect when it is pressed and released by itself.
const MEANS_NOTHING: Keysym = Keysym::SHIFT;

/// Begins the payload of the host's fences.
const FENCE_MARK: [u8; 4] = *b"hand";

/// A fence sent to the display. Answers come in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FenceId(u64);

/// What the display said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    /// It has processed everything that was sent before this fence.
    Answered(FenceId),
    /// A message about the clipboard.
    Clipboard(ClipboardMessage),
}

/// How a display shows that it has processed what was sent.
#[derive(Debug)]
enum Flush {
    /// By answering fences.
    Fence,
    /// By answering a request for one pixel, of servers that know no fences;
    /// one request at a time, since a server may answer several at once.
    Update {
        asked: Option<FenceId>,
        next: Option<FenceId>,
    },
}

/// The connection. See the module's description.
#[derive(Debug)]
pub struct InputConnection {
    stream: Stream,
    parser: ServerParser,
    /// What the kernel has not taken yet.
    waiting: Vec<u8>,
    /// Input messages sent in all.
    sent: u64,
    /// Those of them that the display has shown to have processed.
    processed: u64,
    /// The fences that are not answered, with what had been sent before each.
    fences: VecDeque<(FenceId, u64)>,
    last_fence: FenceId,
    flush: Flush,
    knows_fences: bool,
    clipboard: bool,
    agent: Ledger,
    human: Ledger,
}

/// The messages that let go of what one source holds; made by a ledger only.
type Releases = Vec<InputMessage>;

impl InputConnection {
    /// Connects, and waits for the display's first answer.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn open(upstream: &Upstream, credentials: Credentials) -> Result<Self, ConnectError> {
        let connected = connect(upstream, credentials).await?;
        connected.stream.minimise_send_buffer()?;
        let mut this = Self {
            stream: connected.stream,
            parser: ServerParser::new(connected.init.format),
            waiting: Vec::new(),
            sent: 0,
            processed: 0,
            fences: VecDeque::new(),
            last_fence: FenceId::default(),
            flush: Flush::Update {
                asked: None,
                next: None,
            },
            knows_fences: false,
            clipboard: false,
            agent: Ledger::new(),
            human: Ledger::new(),
        };
        let mut hello = Vec::new();
        input::set_encodings(&ENCODINGS, &mut hello);
        this.stream.write_all(&hello).await?;
        let first = this.fence()?;
        let incoming = this.take(&connected.rest)?;
        this.answers(first, incoming).await?;
        if matches!(this.flush, Flush::Fence) {
            this.follow_locks()?;
        }
        Ok(this)
    }

    /// Waits until the display has answered this fence. What it says besides is not kept.
    async fn answers(
        &mut self,
        fence: FenceId,
        mut incoming: Vec<Incoming>,
    ) -> Result<(), ConnectError> {
        let answered = async {
            while !incoming.contains(&Incoming::Answered(fence)) {
                self.stream.readable().await?;
                incoming = self.read()?;
            }
            Ok::<(), ConnectError>(())
        };
        tokio::time::timeout(HANDSHAKE_WITHIN, answered)
            .await
            .map_err(|_| ConnectError::Timeout)?
    }

    /// Gives the display its first key, one that means nothing, at which it replaces its keyboard
    /// mapping as a whole: what it adds to the mapping for its first key is lost with it, so that
    /// a character beyond the mapping would be. For the time before the desktop's task begins.
    ///
    /// # Errors
    /// The connection is lost, or the display does not answer.
    pub async fn press_first_key(&mut self) -> Result<(), ConnectError> {
        self.send(MEANS_NOTHING.message(true))?;
        self.send(MEANS_NOTHING.message(false))?;
        let fence = self.fence()?;
        self.answers(fence, Vec::new()).await
    }

    /// Asks for the state of the lock keys. Without it Xvnc presses Caps Lock and
    /// Num Lock by its own guess, and a text that ends in a capital letter leaves
    /// Caps Lock on. Not asked of a server without fences: its news of the locks
    /// would pass for the answer to a request for a pixel.
    fn follow_locks(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        input::set_encodings(&[&ENCODINGS[..], &[LED_STATE]].concat(), &mut bytes);
        self.write(&bytes)
    }

    /// True if the display takes and offers text by the extended clipboard.
    pub fn has_clipboard(&self) -> bool {
        self.clipboard
    }

    /// True if a message sent now goes to the kernel at once and few are ahead
    /// of it.
    pub fn is_ready(&self) -> bool {
        self.waiting.is_empty() && self.sent - self.processed < MAX_UNFENCED
    }

    /// Sends a person's input. The pass shows that the arbiter admitted it at
    /// this instant; the connection must be [ready](Self::is_ready).
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send_human(&mut self, _pass: HumanPass<'_>, message: InputMessage) -> io::Result<()> {
        if self.human.record(&message) {
            self.send(message)?;
        }
        Ok(())
    }

    /// Sends an agent's input. The pass shows that the arbiter admitted it at
    /// this instant; the connection must be [ready](Self::is_ready).
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send_agent(&mut self, _pass: AgentPass<'_>, message: InputMessage) -> io::Result<()> {
        if self.agent.record(&message) {
            self.send(message)?;
        }
        Ok(())
    }

    /// Lets go of every key and button that a person holds.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn release_human(&mut self) -> io::Result<()> {
        let releases = self.human.release();
        self.release(releases)
    }

    /// Lets go of every key and button that agents hold.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn release_agent(&mut self) -> io::Result<()> {
        let releases = self.agent.release();
        self.release(releases)
    }

    /// Lets go of buttons that nobody here pressed: after a crash of the host
    /// that did. `at` is where the pointer is.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn release_buttons(&mut self, (x, y): (u16, u16)) -> io::Result<()> {
        self.release(vec![InputMessage::Pointer { mask: 0, x, y }])
    }

    /// Presses and releases lock keys, to have them as they were when nobody
    /// here acted.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn press_locks(&mut self, locks: &[Keysym]) -> io::Result<()> {
        locks
            .iter()
            .flat_map(|lock| [lock.message(true), lock.message(false)])
            .try_for_each(|message| self.send(message))
    }

    fn release(&mut self, releases: Releases) -> io::Result<()> {
        releases
            .into_iter()
            .try_for_each(|message| self.send(message))
    }

    fn send(&mut self, message: InputMessage) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(12);
        message.encode(&mut bytes);
        self.write(&bytes)?;
        self.sent += 1;
        let fenced = self.fences.back().map_or(self.processed, |&(_, sent)| sent);
        if self.sent - fenced >= FENCE_EVERY {
            self.fence()?;
        }
        Ok(())
    }

    /// Asks the display to answer when it has processed everything so far.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn fence(&mut self) -> io::Result<FenceId> {
        self.last_fence.0 += 1;
        let id = self.last_fence;
        self.fences.push_back((id, self.sent));
        let mut bytes = Vec::new();
        match &mut self.flush {
            Flush::Fence => {
                let payload = [&FENCE_MARK[..], &id.0.to_be_bytes()].concat();
                input::fence(
                    input::FENCE_REQUEST | input::FENCE_BLOCK_BEFORE,
                    &payload,
                    &mut bytes,
                );
            }
            Flush::Update { asked: None, .. } => {
                self.flush = Flush::Update {
                    asked: Some(id),
                    next: None,
                };
                input::update_request(false, 0, 0, 1, 1, &mut bytes);
            }
            Flush::Update { next, .. } => *next = Some(id),
        }
        self.write(&bytes)?;
        Ok(id)
    }

    /// Sends a message about the clipboard. A text that is too long for the
    /// wire is sent as an empty one: callers check lengths before.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send_clipboard(&mut self, message: &ClipboardMessage) -> io::Result<()> {
        if !self.clipboard {
            return Ok(());
        }
        let mut bytes = Vec::new();
        if message.encode(Sender::Client, &mut bytes).is_err() {
            let empty = ClipboardMessage::Provide(Some(String::new()));
            // An empty text is never too long.
            let _ = empty.encode(Sender::Client, &mut bytes);
        }
        self.write(&bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() > MAX_WAITING_BYTES {
            return Err(io::Error::other("the display takes no input"));
        }
        self.push()
    }

    /// Hands what waits to the kernel, as far as it takes it.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn push(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty() {
            match self.stream.try_write(&self.waiting) {
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until the display says something, or, if something waits, until
    /// the kernel takes more. Safe to cancel.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn changed(&self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return self.stream.readable().await;
        }
        tokio::select! {
            readable = self.stream.readable() => readable,
            writable = self.stream.writable() => writable,
        }
    }

    /// Takes what the display has said.
    ///
    /// # Errors
    /// The connection is lost, or speaks something else than RFB.
    pub fn read(&mut self) -> io::Result<Vec<Incoming>> {
        let mut incoming = Vec::new();
        let mut buffer = [0; READ_BYTES];
        loop {
            match self.stream.try_read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => incoming.extend(self.take(&buffer[..read])?),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(incoming),
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<Vec<Incoming>> {
        let mut incoming = Vec::new();
        let mut at = 0;
        while let Some(event) = self
            .parser
            .next_event(bytes, &mut at)
            .map_err(io::Error::other)?
        {
            match event {
                ServerEvent::Message(message) => self.message(message, &mut incoming)?,
                ServerEvent::End => self.updated(&mut incoming)?,
                ServerEvent::Header(_) | ServerEvent::Rectangle(_) | ServerEvent::Payload(_) => {}
            }
        }
        Ok(incoming)
    }

    fn message(&mut self, message: ServerMessage, incoming: &mut Vec<Incoming>) -> io::Result<()> {
        match message {
            ServerMessage::Fence(fence) if fence.is_request() => {
                let mut bytes = Vec::new();
                fence.answer(&mut bytes);
                self.write(&bytes)?;
                // A server that asks knows how to answer.
                self.knows_fences = true;
            }
            ServerMessage::Fence(fence) => {
                if let Some(id) = fence.payload.strip_prefix(&FENCE_MARK)
                    && let Ok(id) = id.try_into()
                {
                    self.answered(FenceId(u64::from_be_bytes(id)), incoming);
                }
            }
            ServerMessage::ExtendedCutText(body) => {
                // What cannot be read is about formats that are not text.
                if let Ok(message) = ClipboardMessage::decode(&body) {
                    if let ClipboardMessage::Caps(theirs) = &message {
                        self.clipboard = theirs.text && theirs.provide;
                        self.send_clipboard(&ClipboardMessage::Caps(Capabilities::OURS))?;
                    }
                    incoming.push(Incoming::Clipboard(message));
                }
            }
            ServerMessage::CutText(_)
            | ServerMessage::CutTextTooLong { .. }
            | ServerMessage::Bell
            | ServerMessage::EndOfContinuousUpdates => {}
        }
        Ok(())
    }

    fn updated(&mut self, incoming: &mut Vec<Incoming>) -> io::Result<()> {
        let Flush::Update { asked, next } = &mut self.flush else {
            return Ok(());
        };
        let (answered, next) = (asked.take(), next.take());
        if let Some(id) = answered {
            self.answered(id, incoming);
        }
        if let Some(id) = next {
            self.flush = Flush::Update {
                asked: Some(id),
                next: None,
            };
            let mut bytes = Vec::new();
            input::update_request(false, 0, 0, 1, 1, &mut bytes);
            self.write(&bytes)?;
        } else if self.knows_fences {
            self.flush = Flush::Fence;
        }
        Ok(())
    }

    fn answered(&mut self, id: FenceId, incoming: &mut Vec<Incoming>) {
        while let Some(&(fence, sent)) = self.fences.front()
            && fence <= id
        {
            self.processed = sent;
            self.fences.pop_front();
        }
        incoming.push(Incoming::Answered(id));
    }
}
