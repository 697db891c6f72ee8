//! What is on its way to a viewer's client.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use handover_rfb::gate::Segment;

/// Bytes read from the display at once. Larger reads did not make full frames any faster, smaller ones did cost.
const READ_BYTES: usize = 256 * 1024;
/// Most pieces written at once.
const SLICES: usize = 64;

/// One piece of the display's stream, as far as it is not written, with the gate's own messages in between. As
/// long as something is in it nothing more is read from the display, so it is bounded by itself.
#[derive(Debug)]
pub(super) struct Outgoing {
    buffer: Box<[u8]>,
    segments: VecDeque<Segment>,
    /// Bytes of the first segment that are written.
    written: usize,
    /// Bytes of the gate's own messages among the segments.
    owned: usize,
}

impl Outgoing {
    pub(super) fn new() -> Outgoing {
        Outgoing {
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            segments: VecDeque::new(),
            written: 0,
            owned: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Bytes of the gate's own messages that wait.
    pub(super) fn owned(&self) -> usize {
        self.owned
    }

    /// Where the display's next bytes go. Only while this is empty.
    pub(super) fn buffer(&mut self) -> &mut [u8] {
        debug_assert!(self.is_empty());
        &mut self.buffer
    }

    /// What was read into the buffer.
    pub(super) fn read(&self, length: usize) -> &[u8] {
        &self.buffer[..length]
    }

    /// Adds what a gate let out, in order. Ranges are of the buffer.
    pub(super) fn add(&mut self, segments: &mut Vec<Segment>) {
        for segment in segments.drain(..) {
            if let Segment::Owned(bytes) = &segment {
                self.owned += bytes.len();
            }
            self.segments.push_back(segment);
        }
    }

    /// Writes as much as `write` takes in one call.
    pub(super) fn write(
        &mut self,
        write: impl FnOnce(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<()> {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut count = 0;
        for (slice, segment) in slices.iter_mut().zip(&self.segments) {
            let skip = if count == 0 { self.written } else { 0 };
            *slice = IoSlice::new(&segment.bytes(&self.buffer)[skip..]);
            count += 1;
        }
        let mut taken = write(&slices[..count])? + self.written;
        while let Some(first) = self.segments.front() {
            let length = first.bytes(&self.buffer).len();
            if taken < length {
                break;
            }
            taken -= length;
            if let Some(Segment::Owned(bytes)) = self.segments.pop_front() {
                self.owned -= bytes.len();
            }
        }
        self.written = taken;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_written_once_whatever_the_kernel_takes() {
        let mut outgoing = Outgoing::new();
        outgoing.buffer()[..10].copy_from_slice(b"0123456789");
        let mut segments: Vec<Segment> = vec![
            Segment::Input(0..3),
            Segment::Owned(b"abc".to_vec()),
            Segment::Input(5..10),
            Segment::Owned(b"d".to_vec()),
        ];
        outgoing.add(&mut segments);
        assert_eq!(outgoing.owned(), 4);
        let mut seen: Vec<u8> = Vec::new();
        let mut next = 1;
        while !outgoing.is_empty() {
            let taken = |slices: &[IoSlice<'_>]| {
                let all: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
                let now = next.min(all.len());
                seen.extend(&all[..now]);
                next = next % 4 + 1;
                Ok(now)
            };
            outgoing.write(taken).expect("written");
        }
        assert_eq!(seen, b"012abc56789d");
        assert_eq!(outgoing.owned(), 0);
    }

    #[test]
    fn a_failed_write_loses_nothing() {
        let mut outgoing = Outgoing::new();
        outgoing.add(&mut vec![Segment::Owned(b"abc".to_vec())]);
        let blocked = outgoing.write(|_| Err(io::ErrorKind::WouldBlock.into()));
        assert!(blocked.is_err() && !outgoing.is_empty());
    }
}
