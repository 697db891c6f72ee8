//! What a notifier says: the number of each notice that it has dealt with, on a line of its own.

/// The longest line that can be a number, in bytes.
const LONGEST: usize = 20;

/// Puts lines together from what comes in pieces. A line that is no number says nothing.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    /// The line that has begun. One that is too long stays so.
    line: Vec<u8>,
}

impl Receipts {
    /// The numbers in what came.
    pub(super) fn heard(&mut self, bytes: &[u8]) -> Vec<u64> {
        let mut numbers = Vec::new();
        for &byte in bytes {
            if byte == b'\n' {
                numbers.extend(number(&self.line));
                self.line.clear();
            } else if self.line.len() <= LONGEST {
                self.line.push(byte);
            }
        }
        numbers
    }
}

fn number(line: &[u8]) -> Option<u64> {
    if line.len() > LONGEST {
        return None;
    }
    std::str::from_utf8(line).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_pieces() {
        let mut receipts = Receipts::default();
        let pieces = ["1", "2\n", "", "3\n4\nx\n\n-1\n5 \n", "6", "\n7"];
        let heard: Vec<u64> = pieces
            .iter()
            .flat_map(|piece| receipts.heard(piece.as_bytes()))
            .collect();
        assert_eq!(heard, [12, 3, 4, 6]);
    }

    #[test]
    fn what_is_too_long_is_no_number_and_takes_no_room() {
        let mut receipts = Receipts::default();
        assert!(receipts.heard(&[b'0'; 100_000]).is_empty());
        assert!(receipts.line.len() <= LONGEST + 1);
        assert_eq!(receipts.heard(b"1\n18446744073709551615\n"), [u64::MAX]);
    }
}
