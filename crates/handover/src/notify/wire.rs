//! The little of the D-Bus wire format that one call and its answer need.

/// The body of a call, in little endian. Every value is aligned from the start of the body.
#[derive(Debug, Default)]
pub struct Body(Vec<u8>);

impl Body {
    /// A string (`s`).
    pub fn text(&mut self, text: &str) {
        put_text(&mut self.0, text);
    }

    /// A number of 32 bits (`u` or `i`).
    pub fn number(&mut self, number: u32) {
        put_number(&mut self.0, number);
    }

    /// An empty list of strings (`as`).
    pub fn no_texts(&mut self) {
        self.number(0);
    }

    /// A table with one entry that is a byte (`a{sv}`).
    pub fn byte_hint(&mut self, name: &str, value: u8) {
        self.number(0);
        let length_at = self.0.len() - 4;
        align(&mut self.0, 8);
        let start = self.0.len();
        put_text(&mut self.0, name);
        put_signature(&mut self.0, "y");
        self.0.push(value);
        let length = count(self.0.len() - start);
        self.0[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// What was put in.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// A method call.
#[derive(Debug)]
pub struct Call<'a> {
    /// The name on the bus that is called.
    pub destination: &'a str,
    /// The object.
    pub path: &'a str,
    /// The interface.
    pub interface: &'a str,
    /// The method.
    pub member: &'a str,
    /// The types of what is in the body.
    pub signature: &'a str,
    /// The body.
    pub body: Vec<u8>,
}

impl Call<'_> {
    /// The whole message.
    pub fn message(&self, serial: u32) -> Vec<u8> {
        // Little endian, a call, no flags, version 1.
        let mut message = vec![b'l', 1, 0, 1];
        put_number(&mut message, count(self.body.len()));
        put_number(&mut message, serial);
        // The length of the fields, when it is known.
        put_number(&mut message, 0);
        let start = message.len();
        for (code, kind, text) in [
            (1, "o", self.path),
            (2, "s", self.interface),
            (3, "s", self.member),
            (6, "s", self.destination),
        ] {
            align(&mut message, 8);
            message.push(code);
            put_signature(&mut message, kind);
            put_text(&mut message, text);
        }
        if !self.signature.is_empty() {
            align(&mut message, 8);
            message.push(8);
            put_signature(&mut message, "g");
            put_signature(&mut message, self.signature);
        }
        let length = count(message.len() - start);
        message[start - 4..start].copy_from_slice(&length.to_le_bytes());
        align(&mut message, 8);
        message.extend_from_slice(&self.body);
        message
    }
}

/// What is known of a message from its first 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    big: bool,
    kind: u8,
    fields: usize,
    /// How many bytes follow.
    pub rest: usize,
}

/// What a message is to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The answer to the call with this serial number.
    Answer(u32),
    /// The refusal of it, by its name.
    Refusal(u32, String),
    /// Something else.
    Other,
}

impl Head {
    /// Reads it; `None` if it is no message.
    pub fn read(bytes: &[u8; 16]) -> Option<Self> {
        let big = match bytes[0] {
            b'l' => false,
            b'B' => true,
            _ => return None,
        };
        let body = usize::try_from(number(bytes, 4, big)?).ok()?;
        let fields = usize::try_from(number(bytes, 12, big)?).ok()?;
        let rest = fields.checked_next_multiple_of(8)?.checked_add(body)?;
        Some(Self {
            big,
            kind: bytes[1],
            fields,
            rest,
        })
    }

    /// Reads the rest of the message; `None` if it is none.
    pub fn heard(self, rest: &[u8]) -> Option<Heard> {
        let fields = rest.get(..self.fields)?;
        let (mut serial, mut name) = (None, String::new());
        let mut at = 0;
        while at < fields.len() {
            let code = *fields.get(at)?;
            let length = usize::from(*fields.get(at + 1)?);
            let kind = fields.get(at + 2..at + 2 + length)?;
            // Past the signature's last zero.
            at += length + 3;
            match kind {
                b"u" => {
                    at = at.next_multiple_of(4);
                    let value = number(fields, at, self.big)?;
                    at += 4;
                    if code == 5 {
                        serial = Some(value);
                    }
                }
                b"s" | b"o" => {
                    at = at.next_multiple_of(4);
                    let length = usize::try_from(number(fields, at, self.big)?).ok()?;
                    let text = fields.get(at + 4..(at + 4).checked_add(length)?)?;
                    at += length + 5;
                    if code == 4 {
                        name = String::from_utf8_lossy(text).into_owned();
                    }
                }
                b"g" => at += usize::from(*fields.get(at)?) + 2,
                _ => return None,
            }
            at = at.next_multiple_of(8);
        }
        Some(match (self.kind, serial) {
            (2, Some(serial)) => Heard::Answer(serial),
            (3, Some(serial)) => Heard::Refusal(serial, name),
            _ => Heard::Other,
        })
    }
}

fn number(bytes: &[u8], at: usize, big: bool) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(if big {
        u32::from_be_bytes(bytes)
    } else {
        u32::from_le_bytes(bytes)
    })
}

/// A length. What is sent is far below what would not fit.
fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn align(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

fn put_number(bytes: &mut Vec<u8>, number: u32) {
    align(bytes, 4);
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_number(bytes, count(text.len()));
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
}

fn put_signature(bytes: &mut Vec<u8>, signature: &str) {
    // A signature is at most 255 bytes, and ours are short.
    bytes.push(u8::try_from(signature.len()).unwrap_or(u8::MAX));
    bytes.extend_from_slice(signature.as_bytes());
    bytes.push(0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(bytes: &[u8]) -> Option<Head> {
        Head::read(bytes.first_chunk::<16>()?)
    }

    #[test]
    fn a_call_is_read_back_to_its_last_byte() {
        let mut body = Body::default();
        body.text("ä");
        body.byte_hint("urgency", 2);
        let call = Call {
            destination: "a.b",
            path: "/a/b",
            interface: "a.b",
            member: "M",
            signature: "sa{sv}",
            body: body.into_bytes(),
        };
        let message = call.message(7);
        let head = head(&message).unwrap();
        assert_eq!(head.rest, message.len() - 16);
        assert_eq!(head.heard(&message[16..]), Some(Heard::Other));
        assert!(message.ends_with(&call.body));
    }

    #[test]
    fn answers_and_refusals_in_both_orders_of_bytes() {
        for big in [false, true] {
            let number = |value: u32| {
                if big {
                    value.to_be_bytes()
                } else {
                    value.to_le_bytes()
                }
            };
            let mut fields = vec![5, 1, b'u', 0];
            fields.extend(number(9));
            fields.extend([4, 1, b's', 0]);
            fields.extend(number(3));
            fields.extend(*b"a.E\0");
            for (kind, expected) in [
                (2, Heard::Answer(9)),
                (3, Heard::Refusal(9, "a.E".to_owned())),
                (4, Heard::Other),
            ] {
                let mut message = vec![if big { b'B' } else { b'l' }, kind, 0, 1];
                message.extend(number(0));
                message.extend(number(1));
                message.extend(number(u32::try_from(fields.len()).unwrap()));
                let head = head(&message).unwrap();
                let rest = [&fields[..], &[0; 4]].concat();
                assert_eq!(head.rest, rest.len());
                assert_eq!(head.heard(&rest), Some(expected));
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_from_the_bus_panics(first in any::<[u8; 16]>(), rest in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(head) = Head::read(&first) {
                let _ = head.heard(&rest);
            }
            for big in [false, true] {
                let head = Head { big, kind: 2, fields: rest.len(), rest: rest.len() };
                let _ = head.heard(&rest);
            }
        }
    }
}
