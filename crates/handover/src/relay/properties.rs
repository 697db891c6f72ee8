//! What holds for the gate whatever anybody writes, in whatever pieces.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use handover_protocol::{ErrorCode, PermitName, Refusal};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::allow::Allow;
use super::call::Permit;
use super::gate::{Effect, Gate};
use super::records::MAX_RECORD;
use super::splitter::{Piece, Splitter};

/// Records that do not act, written in all kinds of ways; `#` is the place of an id of its own.
fn quiet() -> impl Strategy<Value = String> {
    let text = "[ a-z{}\\[\\]:,é\u{2028}😀]{0,12}";
    prop_oneof![
        Just(String::new()),
        Just(" \t ".to_owned()),
        Just("[]".to_owned()),
        text.prop_map(|text| json!({"jsonrpc": "2.0", "method": text}).to_string()),
        text.prop_map(|text| format!(
            r#" {{ "id" : # , "method":"ping", "params":{{"x":{}}} }}"#,
            json!(text)
        )),
        text.prop_map(|text| format!(
            r#"{{"result":{{"method":"tools/call","x":{}}},"id":1}}"#,
            json!(text)
        )),
        text.prop_map(|text| format!(
            r#"[{{"id":#,"method":"tools\u002flist"}},{{"method":{}}}]"#,
            json!(text)
        )),
        Just("{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\r".to_owned()),
    ]
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|pair| &bytes[pair[0]..pair[1]])
        .collect()
}

/// Feeds pieces as the loop around the gate does, and gives what arrives at both ends.
fn relayed(pieces: &[&[u8]], from_client: bool) -> (Vec<u8>, Vec<u8>) {
    let mut gate = Gate::new(Allow::new(Vec::new(), true));
    let mut lines = Splitter::new(MAX_RECORD);
    let (mut server, mut client) = (Vec::new(), Vec::new());
    for piece in pieces {
        lines.room().extend_from_slice(piece);
        lines.split(|piece| match piece {
            Piece::Record(record) if from_client => gate.client_wrote(record, Duration::ZERO),
            Piece::Record(record) => gate.server_wrote(record),
            Piece::TooLong => panic!("too long"),
        });
        for effect in gate.effects() {
            match effect {
                Effect::ToServer(record) => server.extend(record),
                Effect::ToClient(record) => client.extend(record),
                other => panic!("{other:?}"),
            }
        }
    }
    (server, client)
}

/// One thing that happens to a gate.
#[derive(Clone, Debug)]
enum Step {
    /// The client calls, alone or two at once.
    Call {
        ids: Vec<u8>,
    },
    Ping(u8),
    Cancel(u8),
    /// The host answers what it was asked, first or last.
    Host {
        last: bool,
        permits: bool,
    },
    /// The host interrupts one of the permits it gave.
    Interrupt(prop::sample::Index),
    /// The server answers a request that it has.
    Answer {
        which: prop::sample::Index,
        fails: bool,
    },
    HostGone,
    Wait(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => vec(0u8..6, 1..3).prop_map(|ids| Step::Call { ids }),
        1 => (0u8..6).prop_map(Step::Ping),
        1 => (0u8..6).prop_map(Step::Cancel),
        6 => any::<(bool, bool)>().prop_map(|(last, permits)| Step::Host { last, permits }),
        2 => any::<prop::sample::Index>().prop_map(Step::Interrupt),
        4 => any::<(prop::sample::Index, bool)>()
            .prop_map(|(which, fails)| Step::Answer { which, fails }),
        1 => Just(Step::HostGone),
        2 => (0u16..4000).prop_map(Step::Wait),
    ]
}

/// What the two ends and the host have seen.
#[derive(Default)]
struct World {
    asked: Vec<u64>,
    /// Calls that the host has permitted, in the order of its answers.
    given: Vec<Permit>,
    complete: HashSet<Permit>,
    /// Requests that the server has and has not answered: id, and whether it is a call.
    at_server: Vec<(u8, bool)>,
    calls_sent: usize,
    /// Requests that the client waits for.
    waits: HashMap<u8, usize>,
    ended: bool,
    /// Whether a new server is to be told about.
    replaced: bool,
}

impl World {
    /// Does what the gate asks for until it asks for nothing more, as the loop around it does before it reads on.
    fn take(&mut self, gate: &mut Gate) {
        loop {
            let effects = gate.effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.perform(effect, gate);
            }
        }
    }

    fn perform(&mut self, effect: Effect, gate: &mut Gate) {
        match effect {
            Effect::ToServer(record) => self.server_reads(&record),
            Effect::ToClient(record) => self.client_reads(&record),
            Effect::AskPermit { call, .. } => self.asked.push(call),
            Effect::Complete(permit) => {
                assert!(self.given.contains(&permit), "never given: {permit:?}");
                assert!(self.complete.insert(permit), "given back twice");
            }
            Effect::Record { .. } => {}
            Effect::AskDraining => gate.draining(true),
            Effect::EndServer(_) => self.ended = true,
            Effect::ReplaceServer(_) => {
                self.at_server.clear();
                self.replaced = true;
            }
            Effect::AskWatched { .. } => panic!("nothing is allowed"),
        }
    }

    fn server_reads(&mut self, record: &[u8]) {
        let record: Value = serde_json::from_slice(record).unwrap();
        for message in each(record) {
            let Some(id) = message["id"].as_u64() else {
                continue;
            };
            let is_call = message["method"] == "tools/call";
            self.calls_sent += usize::from(is_call);
            self.at_server.push((u8::try_from(id).unwrap(), is_call));
        }
        assert!(
            self.calls_sent <= self.given.len(),
            "a call without a permit"
        );
    }

    fn client_reads(&mut self, record: &[u8]) {
        let record: Value = serde_json::from_slice(record).unwrap();
        for message in each(record) {
            let Some(id) = message["id"].as_u64() else {
                continue;
            };
            let waits = self.waits.get_mut(&u8::try_from(id).unwrap()).unwrap();
            *waits = waits.checked_sub(1).expect("answered twice");
        }
    }
}

fn each(record: Value) -> Vec<Value> {
    match record {
        Value::Array(all) => all,
        one => vec![one],
    }
}

fn message(id: u8, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"name": "act"}})
}

proptest! {
    #[test]
    fn what_does_not_act_arrives_byte_for_byte_however_it_is_split(
        records in vec(quiet(), 0..12),
        cuts in vec(any::<prop::sample::Index>(), 0..10),
        rest in "[a-z{]{0,4}",
    ) {
        let records = records.iter().enumerate();
        let text: String = records
            .map(|(number, record)| record.replace('#', &format!("{number}.0e0")) + "\n")
            .collect();
        // What follows the last newline is half a record, which nobody gets.
        let all = format!("{text}{rest}");
        let pieces = pieces(all.as_bytes(), &cuts);
        prop_assert_eq!(relayed(&pieces, true), (text.clone().into_bytes(), Vec::new()));
        prop_assert_eq!(relayed(&pieces, false), (Vec::new(), text.into_bytes()));
    }

    #[test]
    fn nothing_is_read_but_records(bytes in vec(any::<u8>(), 0..80)) {
        let mut gate = Gate::new(Allow::new(Vec::new(), true));
        gate.client_wrote(bytes.clone(), Duration::ZERO);
        gate.server_wrote(bytes);
        prop_assert!(!gate.effects().is_empty());
    }

    #[test]
    fn no_call_without_a_permit_and_no_permit_for_ever(steps in vec(step(), 0..60)) {
        let mut gate = Gate::new(Allow::new(Vec::new(), false));
        let mut world = World::default();
        let mut now = Duration::ZERO;
        let (mut permits, mut link) = (0, 1);
        for step in steps {
            match step {
                Step::Call { ids } => {
                    let calls: Vec<Value> = ids.iter().map(|&id| message(id, "tools/call")).collect();
                    let free = ids.iter().collect::<HashSet<_>>().len() == ids.len()
                        && ids.iter().all(|id| world.waits.get(id).is_none_or(|waits| *waits == 0))
                        && ids.iter().all(|id| !world.at_server.iter().any(|(at, _)| at == id));
                    if free {
                        ids.iter().for_each(|id| *world.waits.entry(*id).or_default() += 1);
                    }
                    let record = match &calls[..] {
                        [one] => one.to_string(),
                        all => json!(all).to_string(),
                    };
                    gate.client_wrote(record.into_bytes(), now);
                }
                Step::Ping(id) => {
                    let free = world.waits.get(&id).is_none_or(|waits| *waits == 0)
                        && !world.at_server.iter().any(|(at, _)| *at == id);
                    if free {
                        *world.waits.entry(id).or_default() += 1;
                    }
                    gate.client_wrote(message(id, "ping").to_string().into_bytes(), now);
                }
                Step::Cancel(id) => {
                    let cancel = json!({"method": "notifications/cancelled", "params": {"requestId": id}});
                    gate.client_wrote(cancel.to_string().into_bytes(), now);
                }
                Step::Host { last, permits: true } if !world.asked.is_empty() => {
                    let at = if last { world.asked.len() - 1 } else { 0 };
                    permits += 1;
                    let permit = Permit { link, name: PermitName::from(format!("p{permits}")) };
                    world.given.push(permit.clone());
                    gate.permitted(world.asked.remove(at), Ok(permit));
                }
                Step::Host { last, .. } if !world.asked.is_empty() => {
                    let at = if last { world.asked.len() - 1 } else { 0 };
                    let refusal = Refusal::new(ErrorCode::Paused, "no");
                    gate.permitted(world.asked.remove(at), Err(refusal));
                }
                Step::Interrupt(which) if !world.given.is_empty() => {
                    gate.interrupt(which.get(&world.given), now);
                }
                Step::Answer { which, fails } if !world.at_server.is_empty() => {
                    let (id, _) = world.at_server.remove(which.index(world.at_server.len()));
                    let member = if fails { "error" } else { "result" };
                    gate.server_wrote(json!({"id": id, member: {}}).to_string().into_bytes());
                }
                Step::HostGone => {
                    gate.host_gone(link, now);
                    link += 1;
                }
                Step::Wait(millis) => {
                    now += Duration::from_millis(millis.into());
                    gate.tick(now);
                }
                _ => {}
            }
            world.take(&mut gate);
            if std::mem::take(&mut world.replaced) {
                prop_assert!(
                    world.waits.values().all(|waits| *waits == 0),
                    "nobody waits for the old server"
                );
                gate.server_is_back(now);
            }
            if world.ended {
                break;
            }
        }
        // In the end the host answers, and so does the server.
        while !world.ended && (!world.asked.is_empty() || !world.at_server.is_empty()) {
            for call in std::mem::take(&mut world.asked) {
                gate.permitted(call, Err(Refusal::new(ErrorCode::Paused, "no")));
            }
            for (id, _) in std::mem::take(&mut world.at_server) {
                gate.server_wrote(json!({"id": id, "result": {}}).to_string().into_bytes());
            }
            world.take(&mut gate);
        }
        if world.ended {
            gate.end("ended");
            world.take(&mut gate);
        } else {
            prop_assert!(gate.is_idle());
            prop_assert_eq!(gate.held_bytes(), 0);
        }
        prop_assert!(world.waits.values().all(|waits| *waits == 0), "every request is answered once");
    }
}
