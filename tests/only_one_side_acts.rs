//! Only one side acts: at no instant does the display receive input from both a person and an agent.
//! The witness is an X client that records every event with its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    ConnectionExt as _, EventMask, KEY_PRESS_EVENT, KeyButMask, KeyPressEvent,
};
use x11rb::rust_connection::RustConnection;

use crate::support::{
    LONG, Recorder, Session, Signal, Typed, check_exclusion, eventually, holds_for, takeovers,
    wall_ms,
};

const AGENT: u32 = b'a' as u32;
const PERSON: u32 = b'h' as u32;

#[test]
fn at_no_instant_do_both_act() {
    let session = Arc::new(Session::up());
    let recorder = Recorder::everything(&session.display());
    let stop = Arc::new(AtomicBool::new(false));
    let agents: Vec<_> = [
        "aaaaaaaa",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ]
    .into_iter()
    .map(|text| {
        let (session, stop) = (Arc::clone(&session), Arc::clone(&stop));
        thread::spawn(move || {
            let mut wire = session.wire();
            let mut refusals = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                if let Err(refused) =
                    wire.call("desktop.type", json!({"desktop": "d1", "text": text}))
                {
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
        eventually("the agents type", LONG, || {
            (recorder.presses(AGENT) > before + 20).then_some(())
        });
        let mut holder = session.take(json!({}));
        holder.viewer.tap("hhhhh");
        eventually("the person types", LONG, || {
            (recorder.presses(PERSON) == round * 5).then_some(())
        });
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
    check_exclusion(&recorder.seen(), &takeovers, AGENT, PERSON);
    assert_eq!(
        recorder.presses(PERSON),
        15 * 5,
        "keys after the return reached the display"
    );
}

/// E1: an ordinary program on the desktop, with the desktop's own cookie, types nothing and clicks nothing,
/// in human time or any other: the display offers it no way to make input.
#[test]
fn programs_on_the_desktop_cannot_make_input() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let display = session.display();
    let recorder = Recorder::everything(&display);
    let mut holder = session.take(json!({}));

    let x = display.connect();
    let test = x
        .query_extension(b"XTEST")
        .expect("sent")
        .reply()
        .expect("an answer");
    assert!(!test.present, "XTEST is there");
    let record = x
        .query_extension(b"RECORD")
        .expect("sent")
        .reply()
        .expect("an answer");
    assert!(!record.present, "RECORD is there");

    // What XSendEvent still delivers is marked as synthetic, and applications ignore it by default.
    let root = x.setup().roots[0].root;
    let focused = x
        .get_input_focus()
        .expect("sent")
        .reply()
        .expect("an answer")
        .focus;
    for window in all_windows(&x, focused) {
        let event = KeyPressEvent {
            response_type: KEY_PRESS_EVENT,
            detail: 38,
            sequence: 0,
            time: x11rb::CURRENT_TIME,
            root,
            event: window,
            child: x11rb::NONE,
            root_x: 1,
            root_y: 1,
            event_x: 1,
            event_y: 1,
            state: KeyButMask::default(),
            same_screen: true,
        };
        let sent = x
            .send_event(false, window, EventMask::KEY_PRESS, event)
            .expect("sent");
        let _ = sent.check();
    }
    holder.viewer.tap("h");
    typed.becomes("h");
    holds_for("only the person typed", Duration::from_millis(300), || {
        typed.text() == "h"
    });
    assert_eq!(recorder.presses(AGENT), 0);
    holder.give_back();
}

fn all_windows(x: &RustConnection, window: u32) -> Vec<u32> {
    let mut found = vec![window];
    if let Some(tree) = x
        .query_tree(window)
        .ok()
        .and_then(|cookie| cookie.reply().ok())
    {
        found.extend(
            tree.children
                .into_iter()
                .flat_map(|child| all_windows(x, child)),
        );
    }
    found
}

/// E3, L14: what was admitted before the takeover ends before the grant or not at all, also when the agent's
/// process is killed while its call is under way.
#[test]
fn what_an_agent_had_under_way_ends_before_the_grant() {
    let session = Session::up();
    let recorder = Recorder::everything(&session.display());
    for round in 0..5 {
        let before = recorder.presses(AGENT);
        let agent = session.start(&["desktop", "type", "--", &"a".repeat(100)]);
        eventually("the agent types", LONG, || {
            (recorder.presses(AGENT) > before).then_some(())
        });
        // Killed half-way in every second round, still typing in the others.
        if round % 2 == 0 {
            agent.signal(Signal::KILL);
        }
        let mut holder = session.take(json!({}));
        let granted = wall_ms();
        holds_for(
            "the agent's keys have ended",
            Duration::from_millis(300),
            || recorder.presses_since(granted, AGENT) == 0,
        );
        holder.give_back();
        holds_for("nothing comes late", Duration::from_millis(200), || {
            recorder.presses_since(granted, AGENT) == 0
        });
        // The next one's keys are not this one's.
        agent.finish(LONG);
    }
    check_exclusion(
        &recorder.seen(),
        &takeovers(&session.journal()),
        AGENT,
        PERSON,
    );
}
