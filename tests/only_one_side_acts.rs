//! Only one side acts: at no instant does the display receive input from both a person and an agent.
//! The witness is an X client that records every event with its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{LONG, Recorder, Seen, Session, What, eventually};

const AGENT: u32 = b'a' as u32;
const PERSON: u32 = b'h' as u32;

/// A takeover as it stands in the record, in wall milliseconds.
struct Takeover {
    start: f64,
    end: f64,
}

fn takeovers(journal: &[Value]) -> Vec<Takeover> {
    let mut found = Vec::new();
    let mut open = None;
    for event in journal {
        let at = event["at"].as_f64().expect("a time");
        match event["kind"].as_str().expect("a kind") {
            "takeover_start" => assert!(open.replace(at).is_none(), "a takeover within a takeover"),
            "takeover_return" | "takeover_cancelled" | "takeover_timeout" | "takeover_revoked" | "takeover_recovered" => {
                found.push(Takeover { start: open.take().expect("a start before the end"), end: at });
            }
            _ => {}
        }
    }
    found
}

/// Checks every event against the record. The record counts whole milliseconds, hence the slack of one.
fn check(seen: &[Seen], takeovers: &[Takeover]) {
    for event in seen {
        match event.what {
            What::Key { keysym: AGENT, .. } => {
                let inside = takeovers.iter().find(|t| event.after > t.start + 1.0 && event.before < t.end);
                assert!(inside.is_none(), "an agent's key in human time: {event:?}");
            }
            What::Key { keysym: PERSON, .. } => {
                let inside = takeovers.iter().any(|t| event.before >= t.start && event.after <= t.end + 1.0);
                assert!(inside, "a person's key outside of every takeover: {event:?}");
            }
            _ => {}
        }
    }
}

#[test]
fn at_no_instant_do_both_act() {
    let session = Arc::new(Session::up());
    let recorder = Recorder::everything(&session.display());
    let stop = Arc::new(AtomicBool::new(false));
    let agents: Vec<_> = ["aaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]
        .into_iter()
        .map(|text| {
            let (session, stop) = (Arc::clone(&session), Arc::clone(&stop));
            thread::spawn(move || {
                let mut wire = session.wire();
                let mut refusals = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    if let Err(refused) = wire.call("desktop.type", json!({"desktop": "d1", "text": text})) {
                        refusals.push(refused.code);
                        thread::sleep(Duration::from_millis(1));
                    }
                }
                refusals
            })
        })
        .collect();

    for round in 1..=15 {
        let before = recorder.presses(AGENT);
        eventually("the agents type", LONG, || (recorder.presses(AGENT) > before + 20).then_some(()));
        let mut holder = session.take(json!({}));
        holder.viewer.tap("hhhhh");
        eventually("the person types", LONG, || (recorder.presses(PERSON) == round * 5).then_some(()));
        holder.give_back();
        // Keys of a person who has just returned control, on a connection that still stands.
        holder.viewer.tap("hhhhh");
    }
    stop.store(true, Ordering::Relaxed);
    for agent in agents {
        for code in agent.join().expect("an agent that does not panic") {
            let expected = ["human_control_active", "interrupted_by_human"];
            assert!(expected.contains(&code.as_str()), "refused with {code}");
        }
    }
    let takeovers = takeovers(&session.journal());
    assert_eq!(takeovers.len(), 15);
    check(&recorder.seen(), &takeovers);
    assert_eq!(recorder.presses(PERSON), 15 * 5, "keys after the return reached the display");
}
