//! What the fuzzer does with its input, and the replay of its corpus: a relay between a client, a server and a
//! host that say whatever the input has.

use std::collections::HashSet;
use std::time::Duration;

use handover_protocol::{ErrorCode, PermitName, Refusal};
use serde_json::Value;

use super::allow::Allow;
use super::call::Permit;
use super::gate::{Effect, Gate};
use super::splitter::{Piece, Splitter};

/// The longest record here: what is longer is soon found.
const LIMIT: usize = 2000;

/// Runs an input, which is a list of steps: a byte that says what happens, a length of two bytes, and as many
/// bytes.
///
/// # Panics
/// If the gate does what it must not.
pub fn run(mut steps: &[u8]) {
    let mut gate = Gate::new(Allow::new(vec!["look_*".to_owned()], true));
    let (mut client, mut server) = (Splitter::new(LIMIT), Splitter::new(LIMIT));
    let mut world = World {
        link: 1,
        ..World::default()
    };
    let mut now = Duration::ZERO;
    while let [kind, high, low, rest @ ..] = steps {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (bytes, later) = rest.split_at(length);
        steps = later;
        match kind % 10 {
            0 | 1 => {
                client.room().extend_from_slice(bytes);
                client.split(|piece| match piece {
                    Piece::Record(record) => gate.client_wrote(record, now),
                    Piece::TooLong => gate.client_wrote_too_much(),
                });
            }
            2 | 3 => {
                server.room().extend_from_slice(bytes);
                server.split(|piece| match piece {
                    Piece::Record(record) => gate.server_wrote(record),
                    Piece::TooLong => gate.server_wrote_too_much(),
                });
            }
            4 | 5 => world.host_answers(&mut gate, true),
            6 => world.host_answers(&mut gate, false),
            7 => {
                let permit = world.given.last().cloned();
                permit.iter().for_each(|permit| gate.interrupt(permit, now));
            }
            8 => {
                now += Duration::from_millis(u64::try_from(length).unwrap_or(u64::MAX));
                gate.tick(now);
            }
            _ => {
                gate.host_gone(world.link, now);
                world.link += 1;
            }
        }
        world.see(&mut gate, now);
        if world.ended {
            gate.end("it has ended");
            world.see(&mut gate, now);
            return;
        }
    }
}

/// What the others have seen.
#[derive(Default)]
struct World {
    /// Which connection to the host there is.
    link: u64,
    asked: Vec<u64>,
    looking: Vec<u64>,
    given: Vec<Permit>,
    complete: HashSet<Permit>,
    /// Calls that the host did not refuse.
    allowed: usize,
    /// Calls that the server has.
    calls: usize,
    ended: bool,
}

impl World {
    fn host_answers(&mut self, gate: &mut Gate, permits: bool) {
        let refused = || Refusal::new(ErrorCode::Paused, "no");
        self.allowed += usize::from(permits && !(self.asked.is_empty() && self.looking.is_empty()));
        if let Some(call) = self.asked.pop() {
            let permit = Permit {
                link: self.link,
                name: PermitName::from(format!("p{}", self.given.len())),
            };
            if permits {
                self.given.push(permit.clone());
            }
            gate.permitted(call, permits.then_some(permit).ok_or_else(refused));
        } else if let Some(call) = self.looking.pop() {
            gate.watched(call, permits.then_some(()).ok_or_else(refused));
        }
    }

    fn see(&mut self, gate: &mut Gate, now: Duration) {
        for effect in gate.effects() {
            match effect {
                Effect::ToServer(record) => {
                    let calls = read(&record)
                        .iter()
                        .filter(|message| is_call(message))
                        .count();
                    self.calls += calls;
                    assert!(self.calls <= self.allowed, "a call that was not permitted");
                }
                Effect::ToClient(record) => drop(read(&record)),
                Effect::AskPermit { call, .. } => self.asked.push(call),
                Effect::AskWatched { call } => self.looking.push(call),
                Effect::Complete(permit) => {
                    assert!(self.given.contains(&permit), "never given: {permit:?}");
                    assert!(self.complete.insert(permit), "given back twice");
                }
                Effect::Record { .. } => {}
                Effect::AskDraining => gate.draining(true),
                Effect::ReplaceServer(_) => gate.server_is_back(now),
                Effect::EndServer(_) => self.ended = true,
            }
        }
    }
}

/// The messages of a record as somebody else reads it, who takes the last of two members of a name and does not
/// look at capitals.
fn read(record: &[u8]) -> Vec<Value> {
    let line = record.strip_suffix(b"\n").expect("a whole record");
    assert!(!line.contains(&b'\n'), "two records in one");
    if line.trim_ascii().is_empty() {
        return Vec::new();
    }
    match serde_json::from_slice(line) {
        Ok(Value::Array(messages)) => messages,
        Ok(message) => vec![message],
        // It reads less deep, and no half of a letter.
        Err(_) => Vec::new(),
    }
}

fn is_call(message: &Value) -> bool {
    let members = message.as_object().into_iter().flatten();
    let methods = members.filter(|(name, _)| name.eq_ignore_ascii_case("method"));
    methods
        .map(|(_, method)| method)
        .any(|method| method == "tools/call")
}

#[cfg(test)]
mod tests {
    /// What a fuzzer finds is added to the corpus and stays fixed.
    #[test]
    fn the_corpus() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/relay");
        let mut inputs = 0;
        for entry in std::fs::read_dir(corpus).unwrap() {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            super::run(&std::fs::read(path).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0);
    }
}
