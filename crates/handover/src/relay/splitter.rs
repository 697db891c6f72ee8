//! Records out of bytes, in pieces of any size and within a limit. They are read into where they stay: a large
//! record keeps the buffer that it came in.

/// Bytes that there is room for at least.
const ROOM: usize = 64 << 10;
/// From this size on a record keeps its buffer; smaller ones are copied out of it.
const LARGE: usize = 32 << 10;
/// Bytes by which the next record may be longer than the last without its buffer growing.
const SLACK: usize = 4 << 10;

/// What a [`Splitter`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A record without its newline.
    Record(Vec<u8>),
    /// A record over the limit; nothing of it is kept.
    TooLong,
}

/// Splits a stream at its newlines. What follows the last one is no record, unless it is asked for.
#[derive(Debug)]
pub(super) struct Splitter {
    limit: usize,
    large: usize,
    /// What was read and is no record yet.
    buffer: Vec<u8>,
    /// How much of it is known to have no newline.
    searched: usize,
    skipping: bool,
}

impl Splitter {
    /// A splitter for records of at most `limit` bytes, their newlines not counted.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            large: LARGE,
            buffer: Vec::new(),
            searched: 0,
            skipping: false,
        }
    }

    /// Where the next bytes of the stream are to be appended, without more room than there is. Then
    /// [`Self::split`] is due.
    pub(super) fn room(&mut self) -> &mut Vec<u8> {
        let length = self.buffer.len();
        if self.buffer.capacity() - length < SLACK {
            // Twice as much each time, but no more than a record can need.
            let most = (self.limit + ROOM).saturating_sub(length);
            self.buffer.reserve_exact(length.min(most).max(ROOM));
        }
        &mut self.buffer
    }

    /// Gives the records that are complete. One over the limit is told once, as soon as that is seen, and
    /// skipped to its newline.
    pub(super) fn split(&mut self, mut found: impl FnMut(Piece)) {
        let mut start = 0;
        while let Some(end) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
            let end = self.searched + end;
            let length = end - start;
            self.searched = end + 1;
            if std::mem::take(&mut self.skipping) {
                // Its end.
            } else if length > self.limit {
                found(Piece::TooLong);
            } else if start == 0 && length >= self.large {
                let rest = &self.buffer[end + 1..];
                // The next record is likely as large.
                let mut next = Vec::with_capacity(rest.len().max(length) + SLACK);
                next.extend_from_slice(rest);
                let mut record = std::mem::replace(&mut self.buffer, next);
                record.truncate(length);
                self.searched = 0;
                found(Piece::Record(record));
                continue;
            } else {
                // With room for the newline, with which it is passed on.
                let mut record = Vec::with_capacity(length + 1);
                record.extend_from_slice(&self.buffer[start..end]);
                found(Piece::Record(record));
            }
            start = end + 1;
        }
        self.buffer.drain(..start);
        if !self.skipping && self.buffer.len() > self.limit {
            self.skipping = true;
            found(Piece::TooLong);
            self.buffer = Vec::new();
        } else if self.skipping {
            self.buffer.clear();
        }
        self.searched = self.buffer.len();
    }

    /// What follows the last newline, once the stream has ended.
    pub(super) fn rest(&mut self) -> Option<Piece> {
        let rest = std::mem::take(&mut self.buffer);
        self.searched = 0;
        (!rest.is_empty()).then_some(Piece::Record(rest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn split(limit: usize, large: usize, pieces: &[&[u8]]) -> Vec<Piece> {
        let mut splitter = Splitter::new(limit);
        splitter.large = large;
        let mut found = Vec::new();
        for piece in pieces {
            splitter.room().extend_from_slice(piece);
            splitter.split(|piece| found.push(piece));
        }
        assert!(splitter.buffer.len() <= limit);
        found
    }

    #[test]
    fn a_long_stream_of_nothing_is_not_kept() {
        let mut splitter = Splitter::new(1 << 20);
        for _ in 0..100 {
            let room = splitter.room();
            let all = room.capacity();
            assert!(all <= (1 << 20) + 2 * ROOM, "{all} bytes are reserved");
            room.resize(all, b'x');
            splitter.split(|piece| assert_eq!(piece, Piece::TooLong));
        }
        splitter.room().extend_from_slice(b"\nnext\n");
        let mut found = Vec::new();
        splitter.split(|piece| found.push(piece));
        assert_eq!(found, [Piece::Record(b"next".to_vec())]);
    }

    #[test]
    fn what_follows_the_last_newline_is_given_once_if_it_is_asked_for() {
        let mut splitter = Splitter::new(8);
        splitter.room().extend_from_slice(b"one\ntwo");
        splitter.split(|piece| assert_eq!(piece, Piece::Record(b"one".to_vec())));
        assert_eq!(splitter.rest(), Some(Piece::Record(b"two".to_vec())));
        assert_eq!(splitter.rest(), None);
        splitter.room().extend_from_slice(b"far too long");
        splitter.split(|piece| assert_eq!(piece, Piece::TooLong));
        assert_eq!(splitter.rest(), None);
    }

    #[test]
    fn a_large_record_is_not_copied() {
        let mut splitter = Splitter::new(1 << 20);
        let record = vec![b'x'; 1 << 19];
        for _ in 0..3 {
            splitter.room().extend_from_slice(&record);
            splitter.room().extend_from_slice(b"\nrest");
            let read = splitter.buffer.as_ptr();
            let mut found = Vec::new();
            splitter.split(|piece| found.push(piece));
            let [Piece::Record(whole)] = &found[..] else {
                panic!("not one record");
            };
            assert_eq!((whole, whole.as_ptr()), (&record, read));
            assert_eq!(splitter.buffer, b"rest");
            splitter.buffer.clear();
            splitter.searched = 0;
        }
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_records(
            text in "[ab\né]{0,60}",
            limit in 0usize..10,
            large in 0usize..10,
            cuts in vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let found = split(limit, large, &pieces);
            let expected: Vec<Piece> = text
                .split_inclusive('\n')
                .filter(|line| line.ends_with('\n') || line.len() > limit)
                .map(|line| line.strip_suffix('\n').unwrap_or(line).as_bytes().to_vec())
                .map(|line| if line.len() > limit { Piece::TooLong } else { Piece::Record(line) })
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
