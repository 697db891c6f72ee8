//! What agents have under way in a browser ends before a person has control, and nothing of it goes on in
//! human time: E3 and C4 for the DevTools protocol.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    DevTools, LONG, Session, Signal, acts_until, attached, cdp_socket, click, command_line,
    eventually, holds_for, shows, signal, wall_ms, with_browser,
};

/// A page that keeps what input it got in `got` and when `step` was called in `steps`, and has a clock of
/// its own.
const PAGE: &str = "data:text/html,<title>page</title><body style='height:500px'><script>\
    var got=[];var steps=[];var ticks=0;setInterval(()=>ticks++,50);\
    const step=()=>{steps.push(Date.now());document.title='agent'};\
    for(const kind of ['mousedown','mouseup','click','keydown','keyup','touchstart','touchend','touchcancel'])\
    addEventListener(kind,event=>got.push(kind+(event.key||'')));\
    addEventListener('keydown',event=>document.title='typed '+event.key);</script>Something to see";

/// Acts on the page, for ever.
const ACTS: &str =
    "(async () => { for (;;) { step(); await new Promise(go => setTimeout(go, 30)) } })()";

/// Begins a script that is waited for, and waits until it acts.
fn begin(session: &Session, client: &mut DevTools, script: &str) -> u64 {
    // The page has a title before its own script has run.
    eventually("there is something to act with", LONG, || {
        (client.value("typeof step") == "function").then_some(())
    });
    let params = json!({"expression": script, "awaitPromise": true});
    let acting = client.send("Runtime.evaluate", params);
    shows(session, "agent");
    acting
}

/// A person takes control, has it for a while and gives it back. Returns how often the page was acted on
/// meanwhile.
fn steps_in_human_time(session: &Session) -> u64 {
    let started = Instant::now();
    let mut holder = session.take(json!({}));
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "it is granted soon"
    );
    let granted = wall_ms();
    holds_for(
        "control is the person's",
        Duration::from_millis(700),
        || session.status()["control"] == "human",
    );
    let over = wall_ms();
    holder.give_back();
    if session.status()["control"] == "paused" {
        session.wire().done("control.resume", json!({}));
    }
    let steps = format!("steps.filter(at => at > {granted} && at < {over}).length");
    let steps = attached(session).value(&steps);
    steps.as_u64().expect("a number")
}

#[test]
fn a_script_that_waits_takes_no_further_step_in_human_time() {
    let session = with_browser(PAGE);
    for script in [
        ACTS,
        "new Promise(() => setInterval(() => step(), 30))",
        "new Promise(() => { (function go() { step(); requestAnimationFrame(go) })() })",
        "eval('(function go() { step(); return new Promise(on => setTimeout(on, 30)).then(go) })()')",
    ] {
        let mut client = attached(&session);
        let acting = begin(&session, &mut client, script);
        assert_eq!(steps_in_human_time(&session), 0, "{script}");
        let cut = client.answer(acting).expect_err("it never ends by itself");
        assert_eq!(cut.code, "interrupted_by_human", "{script}");
        let ticks = client.value("ticks").as_u64();
        eventually("the page's own clock goes on", LONG, || {
            (client.value("ticks").as_u64() > ticks).then_some(())
        });
        client.done("Page.reload", json!({}));
        shows(&session, "page");
    }
}

#[test]
fn a_script_that_waits_in_a_worker_takes_no_further_step() {
    let session = with_browser(PAGE);
    let mut client = attached(&session);
    let follow = json!({"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true});
    client.done("Target.setAutoAttach", follow);
    let begin = "globalThis.worker = new Worker(URL.createObjectURL(new Blob(['step = () => postMessage(0)']))); worker.onmessage = step; 0";
    client.value(begin);
    let worker = client.event("Target.attachedToTarget", |event| {
        event["targetInfo"]["type"] == "worker"
    });
    client.speak_for(worker["sessionId"].as_str().map(str::to_owned));
    self::begin(&session, &mut client, ACTS);
    assert_eq!(steps_in_human_time(&session), 0);
}

#[test]
fn what_an_earlier_script_has_defined_takes_no_further_step_either() {
    let session = with_browser(PAGE);
    let mut client = attached(&session);
    client.value(&format!("globalThis.begin = () => {ACTS}; 0"));
    begin(&session, &mut client, "begin()");
    assert_eq!(steps_in_human_time(&session), 0);
}

#[test]
fn a_script_whose_client_has_gone_takes_no_further_step() {
    let session = with_browser(PAGE);
    let mut client = attached(&session);
    begin(&session, &mut client, ACTS);
    drop(client);
    assert_eq!(steps_in_human_time(&session), 0);
}

#[test]
fn what_cannot_be_shown_to_have_ended_refuses_the_takeover() {
    let session = with_browser(PAGE);
    let mut client = attached(&session);
    // A page whose process is stopped cannot be told anything.
    let processes = session.place.processes();
    let pages = processes.into_iter();
    let pages: Vec<i32> = pages
        .filter(|&pid| command_line(pid).contains("--type=renderer"))
        .collect();
    pages.iter().for_each(|&pid| signal(pid, Signal::STOP));
    let asking = client.send("Runtime.evaluate", json!({"expression": "1"}));
    // It is under way once the host has taken the next command of this client.
    client.done("Browser.getVersion", json!({}));
    let (_viewer, name) = session.viewer();
    let ask = json!({"desktop": "d1", "viewer": name, "drainMs": 1500});
    let refused = session.wire().refused("control.acquire", ask);
    assert_eq!(refused.code, "drain_timeout");
    assert_eq!(session.status()["control"], "agent");
    pages.iter().for_each(|&pid| signal(pid, Signal::CONT));
    // It was told to end; whether it still could be is the browser's.
    let _ = client.answer(asking);
    session.take(json!({})).give_back();
}

#[test]
fn what_is_held_down_is_let_go_at_the_grant() {
    let session = with_browser(PAGE);
    let mut client = attached(&session);
    let mouse = |kind: &str, x: u32| json!({"type": kind, "x": x, "y": 200, "button": "left", "buttons": 1, "clickCount": 1});
    client.done("Input.dispatchMouseEvent", mouse("mousePressed", 100));
    client.done("Input.dispatchMouseEvent", mouse("mouseMoved", 300));
    let key = json!({"type": "rawKeyDown", "key": "Shift", "code": "ShiftLeft", "windowsVirtualKeyCode": 16});
    client.done("Input.dispatchKeyEvent", key);
    let touch = json!({"type": "touchStart", "touchPoints": [{"x": 50, "y": 50}]});
    client.done("Input.dispatchTouchEvent", touch);
    let mut holder = session.take(json!({}));
    // The person is alone with their keys: without a Shift that is held, it is this one.
    acts_until(&session, "typed a", || {
        click(&holder, 400, 400);
        holder.viewer.tap("a");
    });
    holder.give_back();
    let got = client.value("got");
    let got: Vec<&str> = got
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let place = |what: &str| got.iter().position(|got| *got == what);
    let persons = got
        .iter()
        .rposition(|got| *got == "mousedown")
        .expect("a click");
    for released in ["mouseup", "keyupShift", "touchcancel"] {
        assert!(
            place(released).is_some_and(|at| at < persons),
            "{released}: {got:?}"
        );
    }
}

#[test]
fn what_a_client_that_is_killed_held_down_is_let_go() {
    let session = with_browser(PAGE);
    let mut client = attached(&session);
    let key = json!({"type": "rawKeyDown", "key": "Shift", "code": "ShiftLeft", "windowsVirtualKeyCode": 16});
    client.done("Input.dispatchKeyEvent", key);
    drop(client);
    let mut other = attached(&session);
    eventually("the key is up", LONG, || {
        other
            .value("got")
            .to_string()
            .contains("keyupShift")
            .then_some(())
    });
}

/// A trace has pictures in it.
#[test]
fn a_trace_ends_at_the_grant() {
    let session = with_browser(PAGE);
    let mut client = attached(&session);
    let pictures = json!({"categories": "disabled-by-default-devtools.screenshot"});
    client.done("Tracing.start", pictures.clone());
    // A page has one at a time.
    let second = client.send("Tracing.start", pictures.clone());
    client.answer(second).expect_err("one goes on");
    session.take(json!({})).give_back();
    eventually("another can begin", LONG, || {
        let id = client.send("Tracing.start", pictures.clone());
        client.answer(id).ok()
    });
}

#[test]
fn a_dialog_that_a_command_waits_in_is_closed() {
    let session = with_browser(PAGE);
    let mut client = attached(&session);
    client.done("Page.enable", json!({}));
    let asking = client.send(
        "Runtime.evaluate",
        json!({"expression": "confirm('Sure?')"}),
    );
    client.event("Page.javascriptDialogOpening", |_| true);
    let mut holder = session.take(json!({}));
    assert_eq!(
        client.answer(asking).expect("it ends")["result"]["value"],
        false
    );
    holder.give_back();
}

#[test]
fn a_pause_cuts_off_too_and_a_takeover_out_of_it_waits() {
    let session = with_browser(PAGE);
    let mut client = DevTools::connect(&cdp_socket(&session));
    client.attach();
    let acting = begin(&session, &mut client, ACTS);
    session.wire().done("control.pause", json!({}));
    let cut = client.answer(acting).expect_err("it never ends by itself");
    assert_eq!(cut.code, "interrupted_by_human");
    assert_eq!(steps_in_human_time(&session), 0);
}
