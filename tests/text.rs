//! K3, K4, P5: what an agent types arrives exactly, keys are known by their usual names, and calls that race
//! are done one after the other. Everything is read back from an application.

use std::fs;
use std::thread;

use serde_json::{Value, json};
use x11rb::protocol::xproto::{ConnectionExt as _, Keycode};

use crate::support::{LONG, Place, Recorder, Session, Typed, eventually};

/// The keysym of the left Shift key.
const SHIFT: u32 = 0xFFE1;

/// The key right of T of a display.
const Y_KEYCODE: Keycode = 29;

/// Texts of each kind and of each length class, one after the other into one terminal.
#[test]
fn text_arrives_exactly() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let mut agent = session.wire();
    let long = "The quick brown fox jumps over the lazy dog; 0123456789 !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ".repeat(12);
    let texts = [
        "plain words",
        "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
        "MiXeD CaSe 0123456789",
        "é ß ü ñ € – “x”",
        "Ω ж 漢字 日本語",
        "😀 👍 👩‍🚀",
        "a\tb",
        "ÇÅ ŁŐ ğ",
        &long,
        &"漢".repeat(300),
    ];
    let mut expected = String::new();
    for text in texts {
        agent.done("desktop.type", json!({"text": text}));
        expected.push_str(text);
        typed.becomes(&expected);
    }
}

/// K3: the first key that a display ever gets, after which it takes its keyboard mapping anew, is no exception.
#[test]
fn the_first_text_of_a_display_arrives() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let recorder = Recorder::everything(&session.display());
    let mut agent = session.wire();
    agent.done("desktop.type", json!({"text": "ü €é", "method": "keys"}));
    typed.becomes("ü €é");
    eventually("nothing stays pressed", LONG, || {
        recorder.held().is_empty().then_some(())
    });
    assert_eq!(recorder.presses(SHIFT), 0, "{:?}", recorder.seen());
}

/// The same for a key by name.
#[test]
fn the_first_key_of_a_display_arrives() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let mut agent = session.wire();
    agent.done("desktop.key", json!({"keys": "eacute"}));
    typed.becomes("é");
}

/// Whatever keyboard layout a program chooses meanwhile, what is typed is exact, or refused before any of it is.
#[test]
fn text_arrives_after_a_change_of_the_layout() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let x = session.display().connect();
    let mut agent = session.wire();
    let text = "y é€ñ";
    let mut expected = String::new();
    // With the keysym of the key right of T: z, Cyrillic_en, y.
    for (layout, means) in [("de", 0x7A), ("ru", 0x6CE), ("us", 0x79)] {
        let command = ["setxkbmap", layout];
        agent.done(
            "desktop.launch",
            json!({"desktop": "d1", "command": command}),
        );
        eventually("the layout", LONG, || {
            let mapping = x.get_keyboard_mapping(Y_KEYCODE, 1).ok()?.reply().ok()?;
            (mapping.keysyms.first() == Some(&means)).then_some(())
        });
        for method in ["keys", "auto"] {
            agent.done("desktop.type", json!({"text": text, "method": method}));
            expected.push_str(text);
            typed.becomes(&expected);
        }
        let many: String = ('א'..='ת').chain('α'..='ω').collect();
        let refused = agent.refused("desktop.type", json!({"text": many, "method": "keys"}));
        assert_eq!(refused.code, "text_untypable");
        assert_eq!(typed.text(), expected);
    }
}

/// A program that a host with this locale launches is typed text beyond ASCII, which arrives.
#[track_caller]
fn arrives_with(locale: &[(&str, &str)]) {
    let mut place = Place::new();
    for (name, value) in locale {
        place.set(name, *value);
    }
    let session = Session::with(place, &["--desktop", "--size", "800x600"]);
    let typed = Typed::start(&session);
    let mut agent = session.wire();
    let mut expected = String::new();
    for method in ["keys", "paste"] {
        let text = "ü € 漢字 😀 ";
        agent.done("desktop.type", json!({"text": text, "method": method}));
        expected.push_str(text);
        typed.becomes(&expected);
    }
}

/// K3: also where the host was started without any locale, as by a service manager.
#[test]
fn text_arrives_without_a_locale() {
    arrives_with(&[]);
}

/// K3: also where the host was started in the locale of C.
#[test]
fn text_arrives_in_the_locale_of_c() {
    arrives_with(&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")]);
    arrives_with(&[("LC_CTYPE", "POSIX")]);
    arrives_with(&[("LANG", "C")]);
}

/// What a program that is launched on `d1` with `env` has for these variables.
fn locale_of_a_program(session: &Session, env: &Value) -> [String; 3] {
    let told = session.place.path().join("locale");
    let _ = fs::remove_file(&told);
    let tell = format!(
        "printf '%s\\n' \"$LC_ALL\" \"$LC_CTYPE\" \"$LANG\" >{0}.new && mv {0}.new {0}",
        told.display()
    );
    session.wire().done(
        "desktop.launch",
        json!({"desktop": "d1", "command": ["sh", "-c", tell], "env": env}),
    );
    let text = eventually("a program tells its locale", LONG, || {
        fs::read_to_string(&told).ok()
    });
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.try_into().expect("three lines")
}

/// A locale that the user has set is kept, and one that is given to `desktop.launch` wins.
#[test]
fn a_locale_that_is_set_is_kept() {
    let mut place = Place::new();
    place.set("LC_ALL", "de_DE.ISO-8859-1");
    let session = Session::with(place, &["--desktop"]);
    let kept = locale_of_a_program(&session, &json!({}));
    assert_eq!(kept, ["de_DE.ISO-8859-1", "", ""]);
    drop(session);

    let mut place = Place::new();
    place.set("LC_ALL", "C");
    let session = Session::with(place, &["--desktop"]);
    let given = locale_of_a_program(&session, &json!({"LC_ALL": "POSIX"}));
    assert_eq!(given, ["POSIX", "", ""]);
    let given = locale_of_a_program(&session, &json!({"LC_ALL": "", "LANG": "C"}));
    assert_eq!(given, ["", "", "C"]);
}

/// Newlines are Enter, in short text and in long.
#[test]
fn newlines_are_enter() {
    let session = Session::up();
    let typed = Typed::start(&session);
    session
        .wire()
        .done("desktop.type", json!({"text": "one\ntwo\n"}));
    // A terminal in raw mode reads Enter as a carriage return.
    typed.becomes("one\rtwo\r");
}

/// Both methods by name give the same.
#[test]
fn both_methods_type_the_same() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let mut agent = session.wire();
    agent.done(
        "desktop.type",
        json!({"text": "by keys é;", "method": "keys"}),
    );
    typed.becomes("by keys é;");
    agent.done(
        "desktop.type",
        json!({"text": "by paste é;", "method": "paste"}),
    );
    typed.becomes("by keys é;by paste é;");
}

/// Calls that are sent without waiting for their answers are done in the order of their lines, whatever each
/// has to ask the display first.
#[test]
fn calls_in_one_go_keep_their_order() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let mut agent = session.wire();
    let mut expected = String::new();
    let mut last = 0;
    for round in 0..10 {
        let word = format!("w{round}");
        agent.send("desktop.type", json!({"text": word}));
        agent.send("desktop.key", json!({"keys": "minus"}));
        agent.send("desktop.move", json!({"x": 40, "y": 40}));
        last = agent.send("desktop.type", json!({"text": "é", "method": "paste"}));
        expected.push_str(&format!("{word}-é"));
    }
    assert!(agent.answer(last).is_ok());
    typed.becomes(&expected);
}

/// From the command line, where the text may begin with a dash.
#[test]
fn text_from_the_command_line() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let mut command = session.place.handover();
    let outcome = crate::support::Running::start(command.args([
        "desktop",
        "type",
        "--json",
        "--",
        "--note é",
    ]))
    .finish(LONG);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    typed.becomes("--note é");
}

/// K4: an unknown key is an error that names it; aliases are known in any case.
#[test]
fn keys_by_name() {
    let session = Session::up();
    let recorder = Recorder::everything(&session.display());
    let mut agent = session.wire();
    for keys in ["NoSuchKey", "ctrl+nosuchkey"] {
        let refused = agent.refused("desktop.key", json!({"keys": keys}));
        assert_eq!(refused.code, "unknown_key");
        assert!(
            refused.message.to_lowercase().contains("nosuchkey"),
            "{refused:?}"
        );
    }
    assert!(
        recorder.seen().is_empty(),
        "an unknown key pressed something: {:?}",
        recorder.seen()
    );
    for (keys, keysym) in [
        ("Enter", 0xFF0D),
        ("return", 0xFF0D),
        ("Esc", 0xFF1B),
        ("escape", 0xFF1B),
        ("PgUp", 0xFF55),
        ("Page_Up", 0xFF55),
        ("Tab", 0xFF09),
        ("BackSpace", 0xFF08),
        ("Delete", 0xFFFF),
        ("F5", 0xFFC2),
        ("Left", 0xFF51),
        ("Cmd", 0xFFEB),
        ("Super", 0xFFEB),
        ("ctrl+shift+t", u32::from(b't')),
        ("alt+F4", 0xFFC1),
        ("a", u32::from(b'a')),
    ] {
        let before = recorder.presses(keysym);
        agent.done("desktop.key", json!({"keys": keys}));
        eventually(&format!("the key {keys}"), LONG, || {
            (recorder.presses(keysym) > before).then_some(())
        });
        eventually("it is released", LONG, || {
            recorder.held().is_empty().then_some(())
        });
    }
}

/// P5: calls that race are done one after the other; texts never interleave and no modifier leaks.
#[test]
fn racing_calls_do_not_interleave() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let texts = [
        "aaaaaaaaaaaaaaaa",
        "BBBBBBBBBBBBBBBB",
        "cccccccccccccccc",
        "DDDDDDDDDDDDDDDD",
    ];
    thread::scope(|scope| {
        for text in texts {
            let session = &session;
            scope.spawn(move || {
                let mut agent = session.wire();
                for _ in 0..10 {
                    agent.done("desktop.type", json!({"text": text}));
                }
            });
        }
    });
    let all = eventually("all of it", LONG, || {
        Some(typed.text()).filter(|text| text.len() == 4 * 10 * 16)
    });
    for piece in all.as_bytes().chunks(16) {
        assert!(
            piece.iter().all(|byte| byte == &piece[0]),
            "interleaved: {all}"
        );
    }
}

/// P5: several requests on one connection are done in the order in which they were sent.
#[test]
fn calls_are_done_in_their_order() {
    let session = Session::up();
    let typed = Typed::start(&session);
    let mut agent = session.wire();
    let mut expected = String::new();
    let mut calls = Vec::new();
    for number in 0..30 {
        let text = format!("{number} ");
        calls.push(agent.send("desktop.type", json!({"text": text})));
        expected.push_str(&text);
    }
    for call in calls {
        agent.answer(call).expect("typed");
    }
    typed.becomes(&expected);
}
