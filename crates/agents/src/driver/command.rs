//! Any program: its arguments are the whole command, the prompt goes to its standard input, and what
//! it writes to its standard output is the result. Nothing can be steered into it.

use handover_protocol::{ErrorCode, Refusal, SteerState};

use super::{Capabilities, Driver, Effect, Framing, Program, Steer, Task};

/// The longest result that is kept, in bytes; of more, the end.
pub const MAX_RESULT: usize = 1 << 20;

const NOT_STEERABLE: &str = "a plain command reads nothing but its prompt";

/// The driver `command`.
///
/// # Errors
/// `bad_params` without a command.
pub fn create(task: Task) -> Result<(Program, Box<dyn Driver>), Refusal> {
    if task.args.first().is_none_or(String::is_empty) {
        return Err(Refusal::new(
            ErrorCode::BadParams,
            "the driver `command` needs the command in `args`: the program, then its arguments",
        )
        .with("parameter", "args"));
    }
    let program = Program {
        argv: task.args,
        env: Default::default(),
        framing: Framing::Bytes,
    };
    let driver = Command {
        prompt: task.prompt,
        result: Vec::new(),
        shortened: false,
        said: Vec::new(),
    };
    Ok((program, Box::new(driver)))
}

#[derive(Debug)]
struct Command {
    prompt: String,
    result: Vec<u8>,
    shortened: bool,
    /// The beginning of a character whose rest has not come.
    said: Vec<u8>,
}

/// Takes the text out of `bytes` but for an unfinished character at the end.
fn take_text(bytes: &mut Vec<u8>) -> String {
    let unfinished = bytes
        .utf8_chunks()
        .last()
        .map(|chunk| chunk.invalid())
        .filter(|invalid| bytes.ends_with(invalid) && is_beginning(invalid))
        .map_or(0, <[u8]>::len);
    let rest = bytes.split_off(bytes.len() - unfinished);
    let text = String::from_utf8_lossy(bytes).into_owned();
    *bytes = rest;
    text
}

/// Whether more bytes could make a character of these.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

impl Driver for Command {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            not_steerable: Some(NOT_STEERABLE),
            when: &[],
        }
    }

    fn begin(&mut self, out: &mut Vec<Effect>) {
        out.push(Effect::Ready);
        out.push(Effect::TurnBegan);
        let prompt = std::mem::take(&mut self.prompt);
        if !prompt.is_empty() {
            out.push(Effect::Write(prompt.into_bytes()));
        }
        out.push(Effect::CloseInput);
    }

    fn output(&mut self, data: &[u8], out: &mut Vec<Effect>) {
        self.result.extend_from_slice(data);
        // Cut rarely, so that a long output is not moved once for each of its parts.
        if self.result.len() > 2 * MAX_RESULT {
            self.result.drain(..self.result.len() - MAX_RESULT);
            self.shortened = true;
        }
        self.said.extend_from_slice(data);
        let text = take_text(&mut self.said);
        if !text.is_empty() {
            out.push(Effect::Text { child: None, text });
        }
    }

    fn steer(&mut self, steer: Steer, out: &mut Vec<Effect>) {
        out.push(Effect::Receipt {
            steer: steer.id,
            state: SteerState::Dropped,
            reason: Some(NOT_STEERABLE.to_owned()),
        });
    }

    fn interrupt(&mut self, out: &mut Vec<Effect>) {
        // The end of its processes is all the quiet there is.
        out.push(Effect::Settled);
    }

    fn ended(&mut self, success: bool, out: &mut Vec<Effect>) {
        if !self.said.is_empty() {
            let text = String::from_utf8_lossy(&self.said).into_owned();
            out.push(Effect::Text { child: None, text });
        }
        let surplus = self.result.len().saturating_sub(MAX_RESULT);
        self.shortened |= surplus > 0;
        let mut text = String::from_utf8_lossy(&self.result[surplus..]).into_owned();
        if self.shortened {
            text.insert_str(0, "[the beginning is in the output file]\n");
        }
        let _ = success;
        out.push(Effect::TurnEnded { text, error: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_comes_in_two_parts_stays_one() {
        let mut bytes = b"gr\xc3".to_vec();
        assert_eq!(take_text(&mut bytes), "gr");
        bytes.extend(b"\xbcn\xff\xf0\x9f");
        assert_eq!(take_text(&mut bytes), "ün\u{fffd}");
        bytes.extend(b"\x98\x80");
        assert_eq!(take_text(&mut bytes), "😀");
        assert!(bytes.is_empty());
    }
}
