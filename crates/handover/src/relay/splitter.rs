//! Records out of bytes, in pieces of any size and within a limit, without copying a large record twice.

/// What a [`Splitter`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A record without its newline.
    Record(Vec<u8>),
    /// A record over the limit; nothing of it is kept.
    TooLong,
}

/// Splits a stream at its newlines. What follows the last one is no record.
#[derive(Debug)]
pub(super) struct Splitter {
    limit: usize,
    record: Vec<u8>,
    /// The size of the last record that came in several pieces: the next one is likely as large, and is
    /// not moved while it grows then.
    likely: usize,
    skipping: bool,
}

impl Splitter {
    /// A splitter for records of at most `limit` bytes, their newlines not counted.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            record: Vec::new(),
            likely: 0,
            skipping: false,
        }
    }

    /// Takes the next bytes of the stream and gives what they end. A record over the limit is told once,
    /// as soon as that is seen, and skipped to its newline.
    pub(super) fn push(&mut self, bytes: &[u8], mut found: impl FnMut(Piece)) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if self.record.len() + line.len() > self.limit {
                self.record = Vec::new();
                found(Piece::TooLong);
                continue;
            }
            if !self.record.is_empty() {
                self.likely = self.record.len() + line.len() + 1;
            }
            // With room for the newline, with which it is passed on.
            self.record.reserve(line.len() + 1);
            self.record.extend_from_slice(line);
            found(Piece::Record(std::mem::take(&mut self.record)));
        }
        if self.skipping {
            return;
        }
        if self.record.len() + rest.len() > self.limit {
            self.record = Vec::new();
            self.skipping = true;
            found(Piece::TooLong);
        } else if !rest.is_empty() {
            if self.record.is_empty() {
                self.record.reserve(self.likely);
            }
            self.record.extend_from_slice(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn split(limit: usize, pieces: &[&[u8]]) -> Vec<Piece> {
        let mut splitter = Splitter::new(limit);
        let mut found = Vec::new();
        for piece in pieces {
            splitter.push(piece, |piece| found.push(piece));
        }
        assert!(splitter.record.len() <= limit);
        found
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_records(
            text in "[ab\né]{0,60}",
            limit in 0usize..10,
            cuts in vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let found = split(limit, &pieces);
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
