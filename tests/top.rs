//! All sessions are on one screen, and what a person does there reaches them. The screen is a real
//! terminal's; what is checked beside it is the record.

use std::cell::Cell;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::scripted::{self, Scripted, becomes};
use crate::support::{LONG, Place, Running, Session, Signal, Tmux, eventually, processes, signal};

fn session(options: &[&str]) -> Session {
    Session::with(Place::new(), &[&["--name", "shop"], options].concat())
}

/// Starts the screen in a window of this size.
fn top<'a>(session: &'a Session, columns: u16, rows: u16) -> Tmux<'a> {
    let tmux = Tmux::open(&session.place, columns, rows);
    start(&tmux);
    tmux
}

fn start(tmux: &Tmux<'_>) {
    let line = format!("{} top --viewer none", env!("CARGO_BIN_EXE_handover"));
    tmux.line(&line);
    tmux.shows("? help", LONG);
}

/// Clicks on the row of the tree with `text`, so that the log is about `title`.
fn select(tmux: &Tmux<'_>, text: &str, title: &str) {
    // The title of the log is in the second line, beside the tree.
    let is_selected = |screen: &str| {
        let line = screen.lines().nth(1).unwrap_or_default();
        line.split('│')
            .nth(1)
            .is_some_and(|log| log.contains(title))
    };
    let row = |screen: &str| {
        let mut tree = screen.lines().map(|line| line.split('│').next());
        tree.position(|row| row.is_some_and(|row| row.contains(text)))
    };
    let clicked = Cell::new(None::<Instant>);
    tmux.until(&format!("{title} is selected"), LONG, |screen| {
        if is_selected(screen) {
            return true;
        }
        // A screen that is read while it is painted may show the row where it is not. A second click on what is
        // selected already would open it: late enough that the first one has done what it does.
        let again = Duration::from_secs(10);
        if clicked.get().is_none_or(|at| at.elapsed() > again)
            && let Some(row) = row(screen)
        {
            click(tmux, 6, row + 1);
            clicked.set(Some(Instant::now()));
        }
        false
    });
}

/// Clicks at a place, counted from 1, as terminals report it.
fn click(tmux: &Tmux<'_>, column: usize, row: usize) {
    tmux.send(&format!(
        "\u{1b}[<0;{column};{row}M\u{1b}[<0;{column};{row}m"
    ));
}

/// A command that stays, by its id.
fn stays(session: &Session, name: &str) -> String {
    let run = ["agent", "run", "--driver", "command", "--name", name, "--"];
    let program = ["sh", "-c", "echo started; exec sleep 600"];
    let started = session.cli(&[&run[..], &program].concat()).done();
    started["id"].as_str().expect("an id").to_owned()
}

#[test]
fn sessions_and_what_needs_a_person_first() {
    let session = session(&[]);
    stays(&session, "counter");
    let mut command = session.place.handover();
    let up = ["up", "--json", "--new", "--name", "docs"];
    Running::start(command.args(up)).finish(LONG).done();
    let tmux = top(&session, 110, 30);
    // Whether both are there, in this order. A screen may be read while it is painted, so all is waited for.
    let are_in_order = |screen: &str, [first, second]: [&str; 2]| {
        let line = |text: &str| screen.lines().position(|line| line.contains(text));
        line(first).is_some_and(|first| line(second).is_some_and(|second| first < second))
    };
    tmux.until("both sessions, the newer one first", LONG, |screen| {
        are_in_order(screen, ["▾ docs", "▾ shop"])
            && screen.contains("counter")
            && screen.contains("nothing needs you  2 sessions  1 agent")
    });

    let asked = json!({"reason": "which milk", "question": "oat or soy?"});
    let request = session.wire().done("request_human", asked);
    tmux.until("the session that asks, first", LONG, |screen| {
        are_in_order(screen, ["▾ shop", "▾ docs"])
            && screen.contains("needs you: 1")
            && screen.contains("which milk — oat or soy?")
    });
    eventually("the title tells it", LONG, || {
        (tmux.format("#{pane_title}") == "needs 1: handover").then_some(())
    });

    select(&tmux, "? r1", "request r1");
    tmux.keys(&["y"]);
    tmux.shows("answer to", LONG);
    tmux.write("oat, please");
    tmux.keys(&["Enter"]);
    let status = eventually("it is answered", LONG, || {
        let status = session.wire().done("request_status", request.clone());
        (status["state"] == "answered").then_some(status)
    });
    assert_eq!(status["text"], "oat, please");
    tmux.shows("nothing needs you", LONG);
}

#[test]
fn a_message_reaches_the_agent_and_its_receipt_is_shown() {
    let session = session(&[]);
    let agent = Scripted::start(&session, "hold the line", json!({"name": "writer"}));
    becomes(&session, &agent.id, "running");
    let tmux = top(&session, 110, 30);
    select(&tmux, "writer", "writer");
    tmux.keys(&["s"]);
    tmux.shows("message to", LONG);
    tmux.write("first line");
    tmux.keys(&["M-Enter"]);
    tmux.write("second line");
    tmux.keys(&["Enter"]);
    assert_eq!(agent.hears("second line"), "first line\nsecond line");
    // All that the record knows of it, and nothing else.
    tmux.until("the receipt is the record's", LONG, |screen| {
        let states = session.events("steer");
        let states: Vec<_> = states
            .iter()
            .filter_map(|event| event["state"].as_str())
            .collect();
        let ended = ["answered", "dropped", "unknown"];
        states
            .last()
            .is_some_and(|last| ended.contains(last) || states.len() > 1)
            && screen.contains(&format!("message to {}: {}", agent.id, states.join(" › ")))
    });
    let said = session.event("human_intervention");
    assert_eq!(said["text"], "first line\nsecond line");
    // The number is the screen's own, so that sending it again does not say it twice.
    let number = said["steerId"].as_str().expect("a number");
    assert!(number.starts_with("top-"), "{number}");
    assert_eq!(
        said["actor"]["via"]
            .as_str()
            .and_then(|via| via.split('/').next()),
        Some("top")
    );
}

/// Below a program that marks agents the host asks on the terminal itself, once.
#[test]
fn what_has_to_be_confirmed_is_asked_outside_of_the_screen() {
    let session = session(&[]);
    let agent = Scripted::start(&session, "hold the line", json!({"name": "writer"}));
    becomes(&session, &agent.id, "running");
    let tmux = Tmux::open(&session.place, 110, 30);
    tmux.line("CLAUDECODE=1 bash --norc --noprofile");
    start(&tmux);
    select(&tmux, "writer", "writer");
    tmux.keys(&["s"]);
    tmux.shows("message to", LONG);
    tmux.write("a message");
    tmux.keys(&["Enter"]);
    tmux.shows("Type yes and Enter", LONG);
    assert!(!tmux.is_full_screen());
    assert!(!agent.heard().contains(&"a message".to_owned()));
    tmux.line("yes");
    tmux.shows("? help", LONG);
    agent.hears("a message");
    tmux.keys(&["s"]);
    tmux.shows("message to", LONG);
    tmux.write("another");
    tmux.keys(&["Enter"]);
    agent.hears("another");
    assert!(tmux.is_full_screen());
}

#[test]
fn nothing_is_aborted_without_a_yes() {
    let session = session(&[]);
    let id = stays(&session, "counter");
    becomes(&session, &id, "running");
    let tmux = top(&session, 100, 24);
    select(&tmux, "counter", "counter");
    tmux.keys(&["a"]);
    tmux.until("what would be aborted", LONG, |screen| {
        screen.contains("abort this agent?") && screen.contains(&format!("{id} counter running"))
    });
    tmux.keys(&["n"]);
    tmux.shows("nothing was done", LONG);
    assert_eq!(scripted::agent(&session, &id)["status"], "running");
    tmux.keys(&["a"]);
    tmux.shows("abort this agent?", LONG);
    tmux.keys(&["y"]);
    becomes(&session, &id, "aborted");
    tmux.shows(&format!("{id}: aborted"), LONG);
}

fn kinds(session: &Session, kind: &str) -> usize {
    session.events(kind).len()
}

#[test]
fn control_is_taken_and_returned_with_a_note() {
    let session = session(&["--desktop", "--size", "320x240"]);
    // What both takeovers say stands in it.
    let tmux = top(&session, 100, 70);
    let begun = |times: usize| {
        let said = "you have control of d1";
        tmux.until(&format!("takeover {times}"), LONG, |screen| {
            screen.matches(said).count() == times
        });
        session.becomes("human", LONG);
    };
    select(&tmux, "▣ d1 agent", "desktop d1");
    tmux.keys(&["t"]);
    begun(1);
    assert!(!tmux.is_full_screen(), "the takeover has the terminal");
    tmux.line("logged in");
    session.becomes("agent", LONG);
    assert_eq!(session.event("takeover_return")["note"], "logged in");
    tmux.shows("control of d1 is over", LONG);
    tmux.shows("d1 agent", LONG);

    // Ctrl-Z returns control and ends in the screen, not in the shell.
    tmux.keys(&["t"]);
    begun(2);
    tmux.keys(&["C-z"]);
    session.becomes("agent", LONG);
    tmux.shows("control of d1 is over", LONG);
    tmux.shows("d1 agent", LONG);
    assert!(tmux.is_full_screen());

    // What another program of this person holds is returned from here, too.
    let _holder = session.take(json!({}));
    tmux.shows("d1 human", LONG);
    tmux.keys(&["r"]);
    tmux.shows("return d1 with a note", LONG);
    tmux.write("from the screen");
    tmux.keys(&["Enter"]);
    session.becomes("agent", LONG);
    let notes: Vec<Value> = session
        .events("takeover_return")
        .into_iter()
        .map(|event| event["note"].clone())
        .collect();
    assert!(notes.contains(&json!("from the screen")), "{notes:?}");
}

#[test]
fn a_desktop_is_paused_and_everything_stops() {
    let session = session(&["--desktop", "--size", "320x240"]);
    let id = stays(&session, "counter");
    let tmux = top(&session, 100, 24);
    select(&tmux, "▣ d1 agent", "desktop d1");
    tmux.keys(&["p"]);
    session.becomes("paused", LONG);
    tmux.shows("d1 paused", LONG);
    tmux.keys(&["p"]);
    session.becomes("agent", LONG);
    tmux.shows("d1 agent", LONG);

    // Nobody's control ends without a question.
    let _holder = session.take(json!({}));
    tmux.shows("d1 human", LONG);
    tmux.keys(&["p"]);
    tmux.shows("pause it and end a person's control?", LONG);
    session.becomes("human", LONG);
    tmux.keys(&["y"]);
    session.becomes("paused", LONG);
    tmux.shows("d1 paused", LONG);
    tmux.keys(&["p"]);
    session.becomes("agent", LONG);
    tmux.shows("d1 agent", LONG);

    tmux.keys(&["x"]);
    tmux.until("what would be stopped", LONG, |screen| {
        screen.contains("stop all of this in shop?")
            && screen.contains("pause desktop d1")
            && screen.contains(&format!("abort {id}"))
    });
    tmux.keys(&["Escape"]);
    tmux.shows("nothing was done", LONG);
    assert_eq!(session.status()["control"], "agent");
    tmux.keys(&["x"]);
    tmux.shows("stop all of this in shop?", LONG);
    tmux.keys(&["y"]);
    becomes(&session, &id, "aborted");
    session.becomes("paused", LONG);
    assert_eq!(kinds(&session, "paused"), 3);
}

#[test]
fn it_fits_every_size_and_the_mouse_works() {
    let session = session(&["--desktop", "--size", "320x240"]);
    stays(&session, "counter");
    let tmux = top(&session, 100, 24);
    tmux.shows("counter", LONG);
    for (columns, rows) in [(40, 10), (160, 50), (60, 14)] {
        tmux.resize(columns, rows);
        tmux.until(
            "all of it, with the keys in the last line",
            LONG,
            |screen| {
                let last = screen.lines().nth(usize::from(rows) - 1);
                screen.contains("counter") && last.is_some_and(|line| line.contains("q quit"))
            },
        );
    }
    tmux.resize(30, 8);
    tmux.shows("needs 40x10", LONG);
    tmux.resize(100, 24);
    tmux.shows("counter", LONG);
    tmux.keys(&["g"]);
    tmux.until("the session is selected", LONG, |screen| {
        let title = screen.lines().nth(1);
        title.is_some_and(|line| line.ends_with("│ shop"))
    });
    tmux.keys(&["Down"]);
    tmux.shows("│ shop · desktop d1", LONG);
    tmux.keys(&["j"]);
    tmux.shows("│ shop · counter", LONG);
    select(&tmux, "▣ d1", "desktop d1");
    let is_last = |screen: &str| {
        let last = screen.lines().last();
        last.is_some_and(|line| line.contains("? help"))
    };
    let screen = tmux.until("the keys in the last line", LONG, is_last);
    let last = screen.lines().last().expect("a line");
    let column = last.find("? help").expect("the key") + 1;
    click(&tmux, column, 24);
    tmux.shows("emergency stop", LONG);
}

#[test]
fn what_an_agent_prints_does_not_act_on_the_terminal() {
    let session = session(&[]);
    let script = r"printf '\033[2J\033]0;evil\007\033[41mred\033[0m\n'; exec sleep 600";
    scripted::shell(&session, script);
    let tmux = top(&session, 120, 24);
    tmux.until("all that it printed, as text", LONG, |screen| {
        screen.contains(r"\u{1b}[41mred") && screen.contains(r"\u{1b}]0;evil\u{7}")
    });
    assert!(
        !tmux.painted().contains("\u{1b}[41m"),
        "a colour of the agent's"
    );
    assert_eq!(tmux.format("#{pane_title}"), "handover");
    let once = Running::start(session.place.handover().args(["top", "--once"])).finish(LONG);
    assert!(once.out.contains(r"\u{1b}[41mred"), "{once:?}");
    assert!(!once.out.contains('\u{1b}'), "{once:?}");
}

#[test]
fn a_host_that_dies_is_shown_and_one_that_comes_is_found() {
    let session = session(&[]);
    let tmux = top(&session, 100, 24);
    tmux.shows("1 session", LONG);
    signal(session.host(), Signal::KILL);
    tmux.shows("host has ended", LONG);
    tmux.shows("0 sessions", LONG);
    let mut command = session.place.handover();
    let up = ["up", "--json", "--new", "--name", "later"];
    Running::start(command.args(up)).finish(LONG).done();
    tmux.shows("later", LONG);
    tmux.shows("1 session", LONG);
}

#[test]
fn a_host_that_is_stopped_is_shown_and_comes_back() {
    let session = session(&["--desktop", "--size", "320x240"]);
    let tmux = top(&session, 100, 24);
    tmux.shows("▣ d1 agent", LONG);
    signal(session.host(), Signal::STOP);
    // What it said last is still there.
    tmux.until("that it does not answer", LONG, |screen| {
        screen.contains("no answer") && screen.contains("▣ d1 agent")
    });
    signal(session.host(), Signal::CONT);
    tmux.until("it answers again", LONG, |screen| {
        screen.contains("▾ shop") && !screen.contains("no answer")
    });
    session
        .wire()
        .done("control.pause", json!({"desktop": "d1"}));
    tmux.shows("d1 paused", LONG);
}

/// Whether the shell says that the program ended with this status.
fn ended_with(tmux: &Tmux<'_>, status: i32) {
    tmux.until("the screen is the shell's", LONG, |_| {
        !tmux.is_full_screen()
    });
    tmux.line("echo ended with $?.");
    tmux.shows(&format!("ended with {status}."), LONG);
}

/// Whether the shell's terminal is as a shell wants it.
fn is_restored(tmux: &Tmux<'_>) {
    tmux.until("the screen is the shell's", LONG, |_| {
        !tmux.is_full_screen()
    });
    tmux.line("stty -a | tr ' ' '\\n' | grep -x -e icanon -e echo | sort | tr '\\n' +");
    tmux.shows("echo+icanon+", LONG);
    assert_eq!(tmux.format("#{mouse_any_flag}#{cursor_flag}"), "01");
    tmux.line("clear");
    tmux.until("the screen is empty", LONG, |screen| {
        !screen.contains("icanon")
    });
}

#[test]
fn the_terminal_is_as_before_after_every_end() {
    let session = session(&[]);
    let tmux = top(&session, 100, 24);
    tmux.keys(&["q"]);
    ended_with(&tmux, 0);
    is_restored(&tmux);
    start(&tmux);
    tmux.keys(&["C-c"]);
    ended_with(&tmux, 130);
    is_restored(&tmux);
    for end in [Signal::TERM, Signal::HUP] {
        start(&tmux);
        signal(tmux.program(), end);
        ended_with(&tmux, 130);
        is_restored(&tmux);
    }
    // Ctrl-Z, and back again.
    start(&tmux);
    let program = tmux.program();
    tmux.keys(&["C-z"]);
    eventually("it has stopped", LONG, || {
        (processes::state(program) == Some('T')).then_some(())
    });
    is_restored(&tmux);
    tmux.line("fg");
    tmux.shows("? help", LONG);
    assert!(tmux.is_full_screen());
    tmux.keys(&["q"]);
    is_restored(&tmux);
}

#[test]
fn one_frame_for_scripts() {
    let session = session(&["--desktop", "--size", "320x240"]);
    let id = stays(&session, "counter");
    let mut command = session.place.handover();
    let once = Running::start(command.args(["top", "--once"]).env("COLUMNS", "60")).finish(LONG);
    assert_eq!(once.code, 0, "{once:?}");
    for text in ["nothing needs you", "▾ shop", "▣ d1 agent", "counter"] {
        assert!(once.out.contains(text), "{once:?}");
    }
    let model = session.cli(&["top", "--once"]).done();
    assert_eq!(model["needs"], 0);
    assert_eq!(model["counts"]["desktops"], 1);
    let shown = &model["sessions"][0];
    assert_eq!(shown["sessionId"], session.id());
    assert_eq!(shown["agents"][0]["id"], id);
    assert_eq!(shown["desktops"][0]["control"], "agent");

    // A host that is stopped is told of, and does not hold up the others.
    signal(session.host(), Signal::STOP);
    let host = session.host();
    let once = |arguments: &[&str]| {
        let mut command = session.place.handover();
        command
            .args(arguments)
            .args(["top", "--once", "--timeout", "1s"]);
        Running::start(&mut command).finish(LONG)
    };
    let way_on = format!("kill -CONT {host}");
    let silent = once(&[]);
    assert_eq!(silent.code, 1, "{silent:?}");
    assert!(silent.out.contains("handover  no answer: 1"), "{silent:?}");
    assert!(!silent.out.contains("nothing needs you"), "{silent:?}");
    assert!(silent.err.contains(&way_on), "{silent:?}");
    let silent = once(&["--json"]);
    assert_eq!(silent.code, 1, "{silent:?}");
    let model = silent.json();
    assert_eq!(model["sessions"][0]["state"], "lost", "{model}");
    assert_eq!(model["error"]["code"], "timeout", "{model}");
    for command in ["list", "watch"] {
        let asked = session.cli(&[command, "--timeout", "1s"]);
        let message = asked.json()["error"]["message"].to_string();
        assert!(message.contains(&way_on), "{command}: {message}");
    }
    signal(host, Signal::CONT);

    let screen =
        Running::start(session.place.handover().arg("top")).finish(Duration::from_secs(20));
    assert_eq!(screen.code, 2, "{screen:?}");
    assert!(screen.err.contains("--once"), "{screen:?}");
    let unknown = session.cli(&["top", "--once", "--session", "nothing"]);
    assert_eq!(unknown.code, 3, "{unknown:?}");
}
