//! Moves bytes between a viewer's client and its connection to the display.
//!
//! One task does both directions, without locks. What cannot be written stops the reading of what it came from, so a
//! client or a display that does not read fills a bounded buffer and nothing else.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use handover_control::{Epoch, ViewerId};
use handover_rfb::gate::{CloseReason, Gate, GateOutput, ViewerInput};
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::net::UnixStream;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::Settings;
use super::outgoing::Outgoing;
use super::waiting::Client;
use crate::desktop::view::{ControlView, ViewerEvent, ViewerEventKind};
use crate::display::Stream;

/// Bytes that the kernel may hold for a client. One read from the display fits with room to spare, so the next one
/// begins while the client takes it; full frames are 6 % faster for it.
const SEND_BUFFER: usize = 512 * 1024;
/// Bytes read from a client at once.
const READ_BYTES: usize = 16 * 1024;
/// With more than this waiting for the display, or of the gate's own messages for the client, nothing more is read
/// from the client.
const WAITING_LIMIT: usize = 256 * 1024;

/// Why a connected viewer is over.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    /// The client closed its connection.
    #[error("its client left")]
    ClientLeft,
    /// The display closed the viewer's connection.
    #[error("the display closed the connection")]
    DisplayLeft,
    /// The desktop is gone.
    #[error("its desktop is gone")]
    DesktopGone,
    /// The client did not read for as long as is allowed.
    #[error("its client took nothing of what waits for it")]
    Stalled,
    /// The gate gave up on it.
    #[error(transparent)]
    Gate(#[from] CloseReason),
    /// A connection failed.
    #[error("a connection failed: {0}")]
    Io(#[from] io::Error),
}

/// A connected viewer.
#[derive(Debug)]
pub(super) struct Pump {
    viewer: ViewerId,
    client: UnixStream,
    display: Stream,
    gate: Gate,
    out: GateOutput,
    read: Box<[u8]>,
    to_client: Outgoing,
    /// What the display did not take yet.
    to_display: Vec<u8>,
    /// Input that the desktop did not take yet. None is read from the client meanwhile.
    input: VecDeque<ViewerEvent>,
    control: watch::Receiver<ControlView>,
    events: mpsc::Sender<ViewerEvent>,
    epoch: Epoch,
    holder: bool,
    /// The serial of the clipboard that the client was offered last.
    offered: Option<u64>,
    /// When the client took something last, or was owed nothing.
    progress: Instant,
    stalled: Duration,
    /// What both sides sent together with the end of their handshakes.
    first: Option<(Vec<u8>, Vec<u8>)>,
}

impl Pump {
    pub(super) fn new(settings: Settings, viewer: ViewerId, client: Client) -> Pump {
        let mut control = settings.control;
        control.mark_changed();
        let epoch = control.borrow().epoch;
        if let Err(error) = set_socket_send_buffer_size(&client.stream, SEND_BUFFER) {
            tracing::debug!(%viewer, "pictures will be slower: {error}");
        }
        Pump {
            viewer,
            gate: Gate::new(client.display.init.format, &client.title, settings.server),
            client: client.stream,
            display: client.display.stream,
            out: GateOutput::default(),
            read: vec![0; READ_BYTES].into_boxed_slice(),
            to_client: Outgoing::new(),
            to_display: Vec::new(),
            input: VecDeque::new(),
            control,
            events: settings.events,
            epoch,
            holder: false,
            offered: None,
            progress: Instant::now(),
            stalled: settings.patience.stalled,
            first: Some((client.rest, client.display.rest)),
        }
    }

    /// Runs until one side leaves or has to.
    pub(super) async fn run(mut self) -> Ended {
        loop {
            let moved = match self.step() {
                Ok(moved) => moved,
                Err(ended) => {
                    self.last_words();
                    return ended;
                }
            };
            let next = if moved {
                // Others on this thread get their turn even if there is always more to move.
                tokio::task::yield_now().await;
                Ok(())
            } else {
                self.wait().await
            };
            if let Err(ended) = next {
                return ended;
            }
        }
    }

    /// Moves what can be moved now; whether anything was.
    fn step(&mut self) -> Result<bool, Ended> {
        if let Some((from_client, from_display)) = self.first.take() {
            self.to_client.buffer()[..from_display.len()].copy_from_slice(&from_display);
            self.gate.from_server(&from_display, &mut self.out);
            self.take_output()?;
            self.gate.from_viewer(&from_client, &mut self.out);
            self.take_output()?;
        }
        self.look_at_control()?;
        let mut moved = self.read_client()?;
        moved |= self.send_input()?;
        moved |= self.write_display()?;
        moved |= self.read_display()?;
        moved |= self.write_client()?;
        // The gate may have answered the display.
        moved |= self.write_display()?;
        Ok(moved)
    }

    /// Waits until something may have become possible.
    async fn wait(&mut self) -> Result<(), Ended> {
        let client_may_send = self.may_read_client();
        let owed = !self.to_client.is_empty();
        tokio::select! {
            changed = self.control.changed() => {
                changed.map_err(|_| Ended::DesktopGone)?;
                self.control.mark_changed();
            }
            ready = self.client.readable(), if client_may_send => ready?,
            ready = self.client.writable(), if owed => ready?,
            ready = self.display.readable(), if !owed => ready?,
            ready = self.display.writable(), if !self.to_display.is_empty() => ready?,
            place = self.events.reserve(), if !self.input.is_empty() => {
                place.map_err(|_| Ended::DesktopGone)?;
            }
            () = tokio::time::sleep_until(self.progress + self.stalled), if owed => {
                return Err(Ended::Stalled);
            }
        }
        Ok(())
    }

    fn look_at_control(&mut self) -> Result<(), Ended> {
        if self.control.has_changed().map_err(|_| Ended::DesktopGone)? {
            self.follow_control()?;
        }
        Ok(())
    }

    /// Takes over what the desktop published: who holds the lease, the title, the clipboard.
    fn follow_control(&mut self) -> Result<(), Ended> {
        let view = self.control.borrow_and_update().clone();
        self.epoch = view.epoch;
        let holder = view.holder == Some(self.viewer);
        if holder != self.holder {
            self.holder = holder;
            self.offered = None;
            // Whatever waits was meant for the lease that is over.
            self.input.clear();
        }
        self.gate.set_title(&view.title, &mut self.out);
        self.gate.set_holder(holder, &mut self.out);
        if holder {
            let serial = view.clipboard.as_ref().map(|copied| copied.serial);
            if serial != self.offered {
                self.offered = serial;
                let text = view.clipboard.map(|copied| copied.text.to_string());
                self.gate.offer_clipboard(text, &mut self.out);
            }
        }
        self.take_output()
    }

    /// Whether the client's next messages have somewhere to go.
    fn may_read_client(&self) -> bool {
        self.input.is_empty()
            && self.to_display.len() <= WAITING_LIMIT
            && self.to_client.owned() <= WAITING_LIMIT
    }

    fn read_client(&mut self) -> Result<bool, Ended> {
        if !self.may_read_client() {
            return Ok(false);
        }
        match would_block(self.client.try_read(&mut self.read))? {
            None => Ok(false),
            Some(0) => Err(Ended::ClientLeft),
            Some(length) => {
                // Once more: what a person sends as soon as they are told of the grant must find it here.
                self.look_at_control()?;
                self.gate.from_viewer(&self.read[..length], &mut self.out);
                self.take_output()?;
                Ok(true)
            }
        }
    }

    fn read_display(&mut self) -> Result<bool, Ended> {
        if !self.to_client.is_empty() {
            return Ok(false);
        }
        match would_block(self.display.try_read(self.to_client.buffer()))? {
            None => Ok(false),
            Some(0) => Err(Ended::DisplayLeft),
            Some(length) => {
                self.gate
                    .from_server(self.to_client.read(length), &mut self.out);
                self.take_output()?;
                Ok(true)
            }
        }
    }

    /// Spreads what the gate let out over where it goes.
    fn take_output(&mut self) -> Result<(), Ended> {
        if self.to_client.is_empty() {
            self.progress = Instant::now();
        }
        self.to_client.add(&mut self.out.to_viewer);
        self.to_display.append(&mut self.out.to_server);
        for input in self.out.input.drain(..) {
            let kind = match input {
                ViewerInput::Input(message) => ViewerEventKind::Input(message),
                ViewerInput::Clipboard(text) => ViewerEventKind::Clipboard(text),
            };
            self.input.push_back(ViewerEvent {
                viewer: self.viewer,
                epoch: self.epoch,
                kind,
            });
        }
        match self.out.close.take() {
            Some(reason) => Err(reason.into()),
            None => Ok(()),
        }
    }

    fn send_input(&mut self) -> Result<bool, Ended> {
        let mut moved = false;
        while let Some(event) = self.input.pop_front() {
            match self.events.try_send(event) {
                Ok(()) => moved = true,
                Err(TrySendError::Full(event)) => {
                    self.input.push_front(event);
                    break;
                }
                Err(TrySendError::Closed(_)) => return Err(Ended::DesktopGone),
            }
        }
        Ok(moved)
    }

    fn write_display(&mut self) -> Result<bool, Ended> {
        if self.to_display.is_empty() {
            return Ok(false);
        }
        let written = would_block(self.display.try_write(&self.to_display))?;
        self.to_display.drain(..written.unwrap_or(0));
        Ok(written.is_some())
    }

    fn write_client(&mut self) -> Result<bool, Ended> {
        let mut moved = false;
        while !self.to_client.is_empty() {
            let client = &self.client;
            let written = self
                .to_client
                .write(|slices| client.try_write_vectored(slices));
            if would_block(written)?.is_none() {
                break;
            }
            self.progress = Instant::now();
            moved = true;
        }
        Ok(moved)
    }

    /// Gives a client that is to be closed what it can take at once.
    fn last_words(&mut self) {
        // It is closed anyway.
        let _ = self.write_client();
    }
}

/// `None` if it would have blocked.
fn would_block<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Ok(done) => Ok(Some(done)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
