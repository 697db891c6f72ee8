//! An agent at the console: what it says and does as it happens, what is known of a steer and no more, what an
//! abort ends, and what it needs of a person.

use std::time::{Duration, Instant};

use handover_model::{Hold, Reply};
use serde_json::{Value, json};

use crate::support::scripted::{Scripted, becomes, shell, spawn};
use crate::support::web::{Chromium, Desk};
use crate::support::{Console, Gate, LONG, Place, Program, Session, Shell, Stage, eventually};

/// What nobody takes for a page that hangs, on a slow machine.
const ENDURED: Duration = Duration::from_secs(4);

#[test]
fn a_steer_is_followed_to_its_answer() {
    let stage = Stage::new(Program::Pi);
    let gate = Gate::new(&stage.session.place);
    let hold = Hold::new();
    let runs = Program::Pi.runs(Shell::Allowed, &gate.command());
    stage.model.script(
        "the-task",
        [runs, Reply::after(&hold).say("I <b>turn</b> left")],
    );
    let console = Console::start(&stage.session.place, &[]);
    let chromium = Chromium::start(&stage.session.place);
    let agent = stage.spawn("the-task");
    let tab = chromium.opens(&console.url());
    tab.goes(&format!("#/{}/agent/{agent}", stage.session.id()));
    // Its tool, while it runs.
    gate.reached();
    tab.says("transcript", "until [ -e");
    tab.fills("steer-text", "turn left");
    tab.reloads();
    tab.shows("steer-text");
    assert_eq!(tab.text("steer-text"), "turn left");
    tab.fills("steer-text", "turn left instead");
    tab.chooses("steer-when", "next_step");
    tab.clicks("steer-send");
    // The program has it and goes on with its tool: nothing beyond that is said.
    tab.becomes("receipt-*", "data-state", "queued");
    tab.says("transcript", "turn left instead");
    gate.open();
    assert!(hold.reached(LONG), "the model is asked");
    eventually("the page says what the record says", LONG, || {
        let receipts = stage.receipts();
        let last = receipts.values().next()?.last()?.clone();
        let shown = tab.attribute("receipt-*", "data-state");
        (["inserted", "sent"].contains(&last.as_str()) && last == shown).then_some(())
    });
    hold.release();
    tab.becomes("receipt-*", "data-state", "answered");
    tab.says("transcript", "I <b>turn</b> left");
    stage.becomes(&agent, "done");
    tab.says("result", "I <b>turn</b> left");
    tab.shows("not-steerable");
    tab.is_sound("an agent that is done");
    // What was there stays there for who comes later.
    tab.reloads();
    tab.says("transcript", "turn left instead");
    tab.becomes("receipt-*", "data-state", "answered");
}

#[test]
fn an_abort_says_what_ends_with_it() {
    let session = Session::with(Place::new(), &[]);
    let parent = Scripted::start(&session, "hold", json!({"name": "the parent"})).id;
    let below = |name: &str, parent: &str| -> String {
        let params = json!({"driver": "command", "prompt": "", "args": ["sleep", "1000"], "name": name, "parent": parent});
        let spawned: Value = spawn(&session, params).expect("spawned");
        spawned["id"].as_str().expect("an id").to_owned()
    };
    let child = below("the child", &parent);
    let grandchild = below("the grandchild", &child);
    let stranger = shell(&session, "sleep 1000");
    let console = Console::start(&session.place, &[]);
    let chromium = Chromium::start(&session.place);
    let tab = chromium.opens(&console.url());
    for (agent, level) in [(&parent, "2"), (&child, "3"), (&grandchild, "4")] {
        tab.becomes(&format!("agent-{agent}"), "aria-level", level);
    }
    tab.clicks(&format!("agent-{parent}"));
    tab.clicks("abort");
    let ends = tab.text("abort-descendants");
    assert!(
        ends.contains("the child") && ends.contains("the grandchild"),
        "{ends}"
    );
    tab.is_sound("the question before an abort");
    tab.clicks("abort-cancel");
    tab.hides("abort-dialog");
    tab.clicks("abort");
    tab.clicks("abort-confirm");
    tab.hides("abort-dialog");
    for agent in [&parent, &child, &grandchild] {
        becomes(&session, agent, "aborted");
    }
    becomes(&session, &stranger, "running");
    tab.says("agent-page", "aborted");
    assert!(!tab.has("abort"));
}

#[test]
fn what_needs_a_person_comes_first() {
    let desk = Desk::up();
    let session = &desk.session;
    let allowed = json!({"options": {"permissions": ["notifications"]}});
    let (tab, _) = desk.chromium.opens_as("one", &desk.console.url(), allowed);
    tab.says("needs-you", "Nothing");
    assert_eq!(tab.title(), "Handover");
    let asks = crate::agents_hear_of_takeovers::call(
        session,
        "request_human",
        &json!({"reason": "a choice", "question": "red or blue?"}),
    );
    // The browser's own notifications, of a page at which nobody looks.
    tab.evaluates(
        "document.hasFocus = () => false;
         window.notified = [];
         window.Notification = class { constructor(title, { body }) { notified.push(`${title}: ${body}`); } };",
    );
    let asking = Scripted::start(session, &asks, json!({"name": "painter <b>\u{202e}"}));
    tab.says("needs-you", "red or blue?");
    eventually("the title counts it", LONG, || {
        (tab.title() == "(1) Handover").then_some(())
    });
    tab.says("needs-count", "1");
    eventually("it is notified of", LONG, || {
        let notified = tab.evaluates("window.notified").to_string();
        notified.contains("red or blue?").then_some(())
    });
    // Nothing that an agent wrote is markup, hides, or turns round what stands beside it.
    let page = tab.text("needs-you");
    assert!(page.contains("painter <b>"), "{page}");
    assert!(!page.contains('\u{202e}'), "{page:?}");
    assert!(page.contains("\\u{202e}"), "it is written out: {page:?}");
    tab.is_sound("an overview with a request");
    // What is half written outlives a reload.
    tab.fills("answer-r1", "bl");
    tab.reloads();
    tab.shows("answer-r1");
    assert_eq!(tab.text("answer-r1"), "bl");
    tab.says("needs-you", "1 thing needs you");
    tab.fills("answer-r1", "blue");
    tab.clicks("answer-send-r1");
    let answer = asking.hears("answered your request r1");
    assert!(answer.contains("> blue"), "{answer}");
    becomes(session, &asking.id, "done");
    eventually("the title is as before", LONG, || {
        (tab.title() == "Handover").then_some(())
    });
    tab.says("needs-you", "Nothing");
}

/// An agent that prints one endless word does not take the page from the person.
#[test]
fn an_endless_word_does_not_stop_the_page() {
    let session = Session::with(Place::new(), &[]);
    let print = "head -c 200000 /dev/zero | tr '\\0' A; echo; echo the end; sleep 1000";
    let agent = shell(&session, print);
    let desk = Desk::at(session);
    let tab = desk.overview();
    tab.goes(&format!("#/{}/agent/{agent}", desk.session.id()));
    tab.says("transcript", "the end");
    // Each draws the page anew, on either side of where it changes for a phone.
    for (width, height) in [
        (1280, 800),
        (1000, 800),
        (360, 740),
        (740, 360),
        (1280, 800),
    ] {
        // A busy machine may hold up any one of them, but not every one.
        let is_soon = (0..3).any(|wider| {
            let begun = Instant::now();
            tab.resizes(width + wider, height);
            tab.evaluates("document.querySelector('[data-testid=transcript]').scrollHeight");
            let took = begun.elapsed();
            println!("{width}x{height}: {took:?}");
            took < ENDURED
        });
        assert!(is_soon, "{width}x{height} took too long each time");
    }
    tab.resizes(360, 740);
    tab.clicks("abort");
    tab.clicks("abort-confirm");
    becomes(&desk.session, &agent, "aborted");
}
