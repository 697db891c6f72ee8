//! K5: a person who types through a viewer gets the characters of their own keyboard, AltGr and accents
//! included, and keys that only work together work together.

use serde_json::json;

use crate::support::{Recorder, SHORT, Session, Typed, eventually};

/// A viewer sends what its own keyboard says: the characters, not the places of keys.
#[test]
fn the_characters_of_ones_own_keyboard() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let mut holder = session.take(json!({}));
    let altgr = 0xFE03;
    let mut expected = String::new();
    for (keysym, text) in [
        (u32::from(b'a'), "a"),
        (0xE9, "é"),
        (0xDF, "ß"),
        (0xF1, "ñ"),
        (0x0100_0000 + u32::from('ж'), "ж"),
    ] {
        holder.viewer.key(keysym, true);
        holder.viewer.key(keysym, false);
        expected.push_str(text);
        typed.becomes(&expected);
    }
    for (keysym, text) in [
        (0x20AC, "€"),
        (u32::from(b'@'), "@"),
        (u32::from(b'{'), "{"),
    ] {
        holder.viewer.key(altgr, true);
        holder.viewer.key(keysym, true);
        holder.viewer.key(keysym, false);
        holder.viewer.key(altgr, false);
        expected.push_str(text);
        typed.becomes(&expected);
    }
    let shift = 0xFFE1;
    holder.viewer.key(shift, true);
    holder.viewer.tap("HI!");
    holder.viewer.key(shift, false);
    holder.viewer.tap("hi");
    expected.push_str("HI!hi");
    typed.becomes(&expected);
    holder.give_back();
}

/// The first key of a display too, after which it takes its keyboard mapping anew.
#[test]
fn the_first_key_of_a_display() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let mut holder = session.take(json!({}));
    for keysym in [0xE9, 0x20AC] {
        holder.viewer.key(keysym, true);
        holder.viewer.key(keysym, false);
    }
    typed.becomes("é€");
    holder.give_back();
}

/// Ctrl with a letter is one thing to an application.
#[test]
fn keys_held_together() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let recorder = Recorder::everything(&session.display());
    let mut holder = session.take(json!({}));
    let control = 0xFFE3;
    holder.viewer.key(control, true);
    holder.viewer.tap("d");
    holder.viewer.key(control, false);
    typed.becomes("\u{4}");
    eventually("all is released", SHORT, || {
        recorder.held().is_empty().then_some(())
    });
    holder.give_back();
}
