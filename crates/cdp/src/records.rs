//! Messages out of a stream of bytes.

use thiserror::Error;

/// A message is longer than is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a message is longer than {0} bytes")]
pub struct TooLong(pub usize);

/// Cuts a stream into messages. Each ends with a zero byte or a newline, neither of which stands within a
/// message: JSON escapes them in strings, and messages hold none elsewhere.
#[derive(Debug)]
pub struct Records {
    limit: usize,
    buffer: Vec<u8>,
    /// Where the first message that was not taken begins.
    start: usize,
    /// Up to where no end of a message was found.
    searched: usize,
}

impl Records {
    /// For messages of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
        }
    }

    /// Takes in what was read.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message that is not empty.
    ///
    /// # Errors
    /// [`TooLong`]; nothing more comes out of this stream then.
    pub fn next_record(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        loop {
            let unsearched = &self.buffer[self.searched..];
            let end = unsearched.iter().position(|byte| matches!(byte, 0 | b'\n'));
            let end = end.map(|end| self.searched + end);
            let length = end.unwrap_or(self.buffer.len()) - self.start;
            if length > self.limit {
                return Err(TooLong(self.limit));
            }
            let Some(end) = end else {
                self.searched = self.buffer.len();
                return Ok(None);
            };
            let record = self.buffer[self.start..end].to_vec();
            self.start = end + 1;
            self.searched = self.start;
            if !record.trim_ascii().is_empty() {
                return Ok(Some(record));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(records: &mut Records) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| records.next_record().expect("not too long")).collect()
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_messages_are_the_same(
            messages in proptest::collection::vec("[a-z{}]{1,20}", 0..8),
            zero in any::<bool>(),
            cut in 1usize..9,
        ) {
            let end = if zero { "\0" } else { "\n" };
            let stream: String = messages.iter().map(|message| format!("{message}{end}")).collect();
            let mut records = Records::new(20);
            let mut out = Vec::new();
            for part in stream.as_bytes().chunks(cut) {
                records.push(part);
                out.extend(all(&mut records));
            }
            let messages: Vec<Vec<u8>> = messages.into_iter().map(String::into_bytes).collect();
            prop_assert_eq!(out, messages);
        }
    }

    #[test]
    fn a_message_that_is_too_long_is_found_before_its_end() {
        let mut records = Records::new(4);
        records.push(b"abcd\nabcde");
        assert_eq!(records.next_record(), Ok(Some(b"abcd".to_vec())));
        assert_eq!(records.next_record(), Err(TooLong(4)));
    }

    #[test]
    fn what_is_empty_is_passed_over() {
        let mut records = Records::new(4);
        records.push(b"\n\0 \r\na\0");
        assert_eq!(all(&mut records), [b"a".to_vec()]);
    }
}
