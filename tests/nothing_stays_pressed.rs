//! K1, L3: whatever ends a person's control, their input is closed before the end is stored, and no key and no
//! button stays pressed; and the same for an agent whose action dies half-way.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    Holder, LONG, Recorder, SHORT, Session, Signal, Typed, What, alive, eventually, holds_for,
    signal, stop, takeovers,
};

const SHIFT: u32 = 0xFFE1;

/// Holds Shift, a letter and a button in human time, ends control in one way, and checks what the display was told.
fn ends(how: &str, options: Value, end: impl FnOnce(&Session, Holder)) {
    let session = Session::up();
    let recorder = Recorder::everything(&session.display());
    let holder = session.take(options);
    holder.viewer.pointer(0, 200, 200);
    holder.viewer.key(SHIFT, true);
    holder.viewer.key(u32::from(b'G'), true);
    holder.viewer.pointer(1, 200, 200);
    holder.viewer.pointer(1, 220, 230);
    let key = |keysym| What::Key { down: true, keysym };
    let button = What::Button {
        down: true,
        number: 1,
    };
    // Where control ends by itself, it may have done so before this is looked at.
    let pressed = [key(SHIFT), key(u32::from(b'g')), button];
    let display = session.display();
    eventually("Shift, a letter and a button go down", SHORT, || {
        let all = pressed.iter().all(|what| recorder.count(*what) > 0);
        (all && display.pointer().0 == (220, 230)).then_some(())
    });

    end(&session, holder);
    eventually("everything is released", SHORT, || {
        recorder.held().is_empty().then_some(())
    });
    let takeover = eventually("the takeover ends", LONG, || {
        takeovers(&session.journal())
            .pop()
            .filter(|takeover| takeover.end.is_finite())
    });
    assert_eq!(takeover.how, how);
    let late = recorder
        .seen()
        .into_iter()
        .find(|seen| seen.after > takeover.end + 1.0);
    assert!(
        late.is_none(),
        "an event after the end was stored: {late:?}"
    );
    // Releasing a button must not move the pointer: that would drop a drag somewhere else.
    let (at, held) = display.pointer();
    assert_eq!(at, (220, 230));
    assert_eq!(held, 0, "the display holds a button or a modifier");
}

#[test]
fn returned() {
    ends("return", json!({}), |_, mut holder| {
        holder.give_back();
    });
}

#[test]
fn cancelled() {
    ends("cancelled", json!({}), |_, mut holder| {
        let mut params = holder.proof();
        params["reason"] = json!("cancelled");
        holder.wire.done("control.return", params);
    });
}

#[test]
fn viewer_closed() {
    ends(
        "return",
        json!({}),
        |session, Holder { wire, viewer, .. }| {
            viewer.close();
            session.becomes("agent", SHORT);
            drop(wire);
        },
    );
}

#[test]
fn controller_gone() {
    ends(
        "recovered",
        json!({}),
        |session, Holder { wire, viewer, .. }| {
            drop(wire);
            session.becomes("agent", SHORT);
            assert!(viewer.open(), "the viewer goes on watching");
        },
    );
}

// What ends control by itself comes late enough for the person to have pressed everything.

#[test]
fn not_renewed() {
    ends("timeout", json!({"ttlMs": 8000}), |session, holder| {
        session.becomes("agent", LONG);
        drop(holder);
    });
}

#[test]
fn idle() {
    ends("timeout", json!({"idleMs": 6000}), |session, holder| {
        session.becomes("agent", LONG);
        drop(holder);
    });
}

#[test]
fn maximum_reached() {
    ends("timeout", json!({"maxMs": 8000}), |session, holder| {
        session.becomes("agent", LONG);
        drop(holder);
    });
}

#[test]
fn lingered_too_long() {
    let options = json!({"onDisconnect": "linger", "lingerMs": 500});
    ends(
        "timeout",
        options,
        |session, Holder { wire, viewer, .. }| {
            drop(wire);
            session.becomes("agent", LONG);
            drop(viewer);
        },
    );
}

#[test]
fn revoked() {
    ends("revoked", json!({}), |session, holder| {
        session
            .wire()
            .done("control.revoke", json!({"desktop": "d1", "force": true}));
        drop(holder);
    });
}

#[test]
fn paused() {
    ends("revoked", json!({}), |session, holder| {
        session
            .wire()
            .done("control.pause", json!({"desktop": "d1"}));
        session.becomes("paused", SHORT);
        drop(holder);
    });
}

/// A person whose input ends at once because the connection went holds nothing while the lease lingers either.
#[test]
fn released_as_soon_as_the_lease_is_parked() {
    let session = Session::up();
    let recorder = Recorder::everything(&session.display());
    let Holder { wire, viewer, .. } =
        session.take(json!({"onDisconnect": "linger", "lingerMs": 30_000}));
    viewer.key(SHIFT, true);
    eventually("Shift is held", SHORT, || {
        (recorder.held().len() == 1).then_some(())
    });
    drop(wire);
    eventually("Shift is released", SHORT, || {
        recorder.held().is_empty().then_some(())
    });
    assert_eq!(session.status()["control"], "human");
}

const CAPS_LOCK: u32 = 0xFFE5;
const NUM_LOCK: u32 = 0xFF7F;

/// The modifiers that the display has on: 2 for Caps Lock, 16 for Num Lock.
fn modifiers(session: &Session) -> u16 {
    session.display().pointer().1
}

fn press(holder: &Holder, keysym: u32) {
    holder.viewer.key(keysym, true);
    holder.viewer.key(keysym, false);
}

/// A lock key that a person leaves on is off again when the agent goes on.
#[test]
fn lock_keys_are_off_again() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let mut agent = session.wire();
    for _ in 0..3 {
        let recorder = Recorder::everything(&session.display());
        let mut holder = session.take(json!({}));
        press(&holder, CAPS_LOCK);
        press(&holder, NUM_LOCK);
        eventually("both are on", SHORT, || {
            (modifiers(&session) == 18).then_some(())
        });
        holder.give_back();
        assert_eq!(modifiers(&session), 0);
        // What put them right came before the end was stored.
        let seen = eventually("all of it is recorded", SHORT, || {
            let seen = recorder.seen();
            (seen.len() >= 8).then_some(seen)
        });
        let end = takeovers(&session.journal()).pop().expect("on record").end;
        assert!(seen.iter().all(|seen| seen.after <= end + 1.0));
        agent.done("desktop.screenshot", json!({"desktop": "d1"}));
        let before = typed.text();
        agent.done("desktop.type", json!({"text": "a", "method": "keys"}));
        typed.becomes(&format!("{before}a"));
    }
}

/// A lock key that an agent had on is on again, whatever the person made of it.
#[test]
fn lock_keys_of_an_agent_are_on_again() {
    let session = Session::up();
    session
        .wire()
        .done("desktop.key", json!({"keys": "Num_Lock"}));
    assert_eq!(modifiers(&session), 16);
    let mut holder = session.take(json!({}));
    press(&holder, NUM_LOCK);
    press(&holder, CAPS_LOCK);
    eventually("the other one is on", SHORT, || {
        (modifiers(&session) == 2).then_some(())
    });
    holder.give_back();
    assert_eq!(modifiers(&session), 16);
    let mut holder = session.take(json!({}));
    press(&holder, CAPS_LOCK);
    press(&holder, CAPS_LOCK);
    holder.give_back();
    assert_eq!(modifiers(&session), 16);
}

/// A display that is held up when control is asked for tells late which lock keys are on, and of its windows perhaps
/// not at all: then none is said to be new.
#[test]
fn what_was_there_before_is_known_of_a_slow_display_too() {
    let session = Session::up();
    let typed = Typed::start(&session);
    session
        .wire()
        .done("desktop.key", json!({"keys": "Num_Lock"}));
    assert_eq!(modifiers(&session), 16);
    let (viewer, name) = session.viewer();
    viewer.first_frame();
    let server = session.display_server();
    stop(&[server]);
    let mut wire = session.wire();
    let params = json!({"desktop": "d1", "viewer": name});
    let asked = wire.send("control.acquire", params);
    holds_for("it is held up", Duration::from_millis(800), || {
        alive(server)
    });
    signal(server, Signal::CONT);
    let granted = wire.answer(asked).expect("granted");
    let mut holder = Holder {
        wire,
        viewer,
        granted,
    };
    press(&holder, NUM_LOCK);
    eventually("it is off", SHORT, || {
        (modifiers(&session) == 0).then_some(())
    });
    holder.give_back();
    assert_eq!(modifiers(&session), 16);
    let told = session.status()["lastHandBack"].clone();
    assert_eq!(told["windowsOpened"], json!([]), "{told}");
    assert!(alive(typed.pid));
}

/// Nor is a lock key left on by a takeover that ended with the host.
#[test]
fn lock_keys_are_off_when_the_host_is_back() {
    let mut session = Session::up();
    assert_eq!(modifiers(&session), 0);
    let holder = session.take(json!({}));
    press(&holder, CAPS_LOCK);
    eventually("it is on", SHORT, || {
        (modifiers(&session) == 2).then_some(())
    });
    let host = session.host();
    signal(host, Signal::KILL);
    eventually("the host is dead", SHORT, || (!alive(host)).then_some(()));
    session.again();
    eventually("it is off", SHORT, || {
        (modifiers(&session) == 0).then_some(())
    });
}

/// An agent's drag whose caller is killed in the middle leaves no button down.
#[test]
fn an_agent_that_dies_in_the_middle() {
    let session = Session::up();
    let recorder = Recorder::everything(&session.display());
    for _ in 0..5 {
        let mut agent = session.wire();
        agent.send(
            "desktop.drag",
            json!({"desktop": "d1", "from": [100, 100], "to": [400, 300]}),
        );
        drop(agent);
        let mut typist = session.wire();
        typist.send(
            "desktop.type",
            json!({"desktop": "d1", "text": "ABC".repeat(30), "method": "keys"}),
        );
        eventually("typing has begun", SHORT, || {
            recorder.seen().last().map(|_| ())
        });
        drop(typist);
        session.take(json!({})).give_back();
        eventually("nothing is held", SHORT, || {
            recorder.held().is_empty().then_some(())
        });
    }
}
