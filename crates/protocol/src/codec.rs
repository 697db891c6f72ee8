//! Lines out of bytes, in pieces of any size and within a limit.

/// Bytes of memory that are kept for the lines to come, after a long one.
const KEPT: usize = 64 << 10;

/// Splits a stream into lines.
///
/// A line over the limit is reported once, as soon as it is seen to be too long, and the rest of
/// it is skipped. What follows the last newline of a stream is not a line.
#[derive(Debug)]
pub struct LineDecoder {
    limit: usize,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that earlier calls took.
    taken: usize,
    /// Bytes of `buffer` in which no newline was found yet.
    searched: usize,
    skipping: bool,
}

/// What a [`LineDecoder`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A line without its newline.
    Whole(Vec<u8>),
    /// A line over the limit; nothing of it is kept.
    TooLong,
}

impl LineDecoder {
    /// A decoder for lines of at most `limit` bytes, their newlines not counted.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: Vec::new(),
            taken: 0,
            searched: 0,
            skipping: false,
        }
    }

    /// Takes the next bytes of the stream. Call [`Self::next_line`] until it has no more.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT {
            self.buffer = Vec::new();
        }
        self.searched -= self.taken;
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next line, or `None` until more bytes are pushed.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            let found = self.buffer[self.searched..]
                .iter()
                .position(|&byte| byte == b'\n');
            let Some(found) = found else {
                self.searched = self.buffer.len();
                return self.check_unfinished();
            };
            let end = self.searched + found;
            let start = std::mem::replace(&mut self.taken, end + 1);
            self.searched = end + 1;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            let line = &self.buffer[start..end];
            return Some(if line.len() > self.limit {
                Line::TooLong
            } else {
                Line::Whole(line.to_vec())
            });
        }
    }

    /// Whether part of a line has arrived whose end has not.
    pub fn is_inside_line(&self) -> bool {
        self.skipping || self.taken < self.buffer.len()
    }

    fn check_unfinished(&mut self) -> Option<Line> {
        let too_long = self.buffer.len() - self.taken > self.limit;
        if self.skipping || too_long {
            self.taken = self.buffer.len();
        }
        let first_time = too_long && !self.skipping;
        self.skipping |= too_long;
        first_time.then_some(Line::TooLong)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn decode<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Line> {
        let mut decoder = LineDecoder::new(limit);
        let mut lines = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Some(line) = decoder.next_line() {
                lines.push(line);
            }
        }
        lines
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn the_limit_counts_bytes() {
        // Three characters of two bytes each.
        assert_eq!(decode(6, ["ééé\n".as_bytes()]), [whole("ééé")]);
        assert_eq!(decode(5, ["ééé\n".as_bytes()]), [Line::TooLong]);
    }

    #[test]
    fn a_long_line_is_reported_before_its_end_and_once() {
        let mut decoder = LineDecoder::new(3);
        decoder.push(b"abcd");
        assert_eq!(decoder.next_line(), Some(Line::TooLong));
        assert_eq!(decoder.next_line(), None);
        assert!(decoder.is_inside_line());
        decoder.push(b"efghijkl");
        assert_eq!(decoder.next_line(), None);
        decoder.push(b"\nok\n");
        assert_eq!(decoder.next_line(), Some(whole("ok")));
        assert_eq!(decoder.next_line(), None);
        assert!(!decoder.is_inside_line());
    }

    #[test]
    fn skipped_bytes_are_not_kept() {
        let mut decoder = LineDecoder::new(10);
        for _ in 0..1000 {
            decoder.push(&[b'x'; 100]);
            while decoder.next_line().is_some() {}
        }
        assert!(decoder.buffer.len() <= 100);
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_lines(
            text in "[ab\né]{0,60}",
            limit in 0usize..10,
            cuts in vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            let split = decode(limit, pieces);
            prop_assert_eq!(&split, &decode(limit, [bytes]));

            let expected: Vec<_> = text
                .split_inclusive('\n')
                .filter(|line| line.ends_with('\n') || line.len() > limit)
                .map(|line| line.strip_suffix('\n').unwrap_or(line))
                .map(|line| if line.len() > limit { Line::TooLong } else { whole(line) })
                .collect();
            prop_assert_eq!(split, expected);
        }
    }
}
