//! L8, A12: a person who looks at no client hears that an agent asks for them and that their control is about to
//! end: by a post on the web, on their desktop and at their terminal.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::support::{
    LONG, Place, Reaction, Receiver, Running, Session, Signal, command_line, eventually, holds_for,
    processes, signal,
};

/// A place with this configuration.
fn place(config: &str) -> Place {
    let place = Place::new();
    configure(&place, config);
    place
}

fn configure(place: &Place, config: &str) {
    let directory = place.path().join(".config/handover");
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("config.toml"), config).expect("a configuration");
}

fn posting_to(receiver: &Receiver, more: &str) -> Session {
    let url = format!("{}/alerts", receiver.address());
    let place = place(&format!(
        "[notify]\nurl = \"{url}\"\ndesktop = false\n{more}"
    ));
    Session::with(place, &["--desktop", "--size", "320x200"])
}

fn ask(session: &Session, reason: &str) -> String {
    let params = json!({"desktop": "d1", "reason": reason});
    let asked = session.wire().done("request_human", params);
    asked["requestId"].as_str().expect("an id").to_owned()
}

/// The notifier of a session, if it runs.
fn notifier(session: &Session) -> Option<i32> {
    let is_notifier = |pid| command_line(pid).trim_end().ends_with("handover notifier");
    let mut children = processes::children(session.host()).into_iter();
    children.find(|&pid| processes::alive(pid) && is_notifier(pid))
}

/// Waits for the notifier after those before.
fn next_notifier(session: &Session, before: &[i32]) -> i32 {
    eventually("another notifier", LONG, || {
        notifier(session).filter(|pid| !before.contains(pid))
    })
}

/// Waits until there was a post of each of these requests, told by how their reasons begin.
fn all_told(receiver: &Receiver, reasons: &[String]) {
    eventually("every notice is told", LONG, || {
        let posts = receiver.posts();
        let told = |reason: &String| {
            let mut messages = posts
                .iter()
                .filter_map(|post| post.body["message"].as_str());
            messages.any(|message| message.starts_with(reason))
        };
        reasons.iter().all(told).then_some(())
    });
}

fn log(session: &Session) -> String {
    fs::read_to_string(session.state().join("logs/notifier.log")).unwrap_or_default()
}

#[test]
fn a_request_is_posted_once_it_is_taken() {
    let receiver = Receiver::start(&[Reaction::Status(503), Reaction::Nothing]);
    let session = posting_to(&receiver, "");
    assert_eq!(notifier(&session), None, "nothing to tell yet");
    let id = ask(
        &session,
        "log in <b>please</b>\u{1b}[2J with token=SECRETSECRET",
    );
    let posts = receiver.gets(3);
    for post in &posts {
        assert_eq!(post.path, "/alerts");
        assert_eq!(post.body, posts[0].body);
        assert_eq!(post.header("content-type"), Some("application/json"));
        // What an ntfy server goes by on a topic.
        assert_eq!(post.header("x-template"), Some("yes"));
        assert_eq!(post.header("x-message"), Some("{{.message}}"));
        assert_eq!(post.header("authorization"), None);
    }
    let body = &posts[0].body;
    assert_eq!(body["topic"], "alerts");
    assert_eq!(body["priority"], 4);
    assert_eq!(body["tags"], json!(["raised_hand"]));
    assert_eq!(body["kind"], "request_human");
    assert_eq!(body["requestId"], json!(id));
    assert_eq!(body["session"], json!(session.id()));
    assert_eq!(body["desktop"], "d1");
    let (title, message) = (body["title"].to_string(), body["message"].to_string());
    assert!(title.contains("asks for a person"), "{title}");
    assert!(message.contains("log in <b>please</b>"), "{message}");
    assert!(message.contains("handover watch d1 --control"), "{message}");
    assert!(!body.to_string().contains("SECRET"), "{body}");
    assert!(!body["message"].as_str().expect("text").contains('\u{1b}'));
    holds_for("it is posted once", Duration::from_secs(2), || {
        receiver.posts().len() == 3
    });
}

#[test]
fn a_receiver_that_asks_for_a_pause_gets_it() {
    let receiver = Receiver::start(&[Reaction::With(429, "Retry-After: 2\r\n")]);
    let session = posting_to(&receiver, "");
    ask(&session, "first");
    let posts = receiver.gets(2);
    let pause = posts[1].at - posts[0].at;
    assert!(
        pause >= Duration::from_secs(2),
        "tried again after {pause:?}"
    );
}

#[test]
fn what_would_fail_again_is_not_tried_again_and_the_next_is() {
    let other = Receiver::start(&[]);
    let away: &'static str =
        Box::leak(format!("Location: {}/x\r\n", other.address()).into_boxed_str());
    for (reply, said) in [
        (Reaction::Status(404), "404"),
        (Reaction::Status(403), "notify.token_file"),
        (Reaction::With(307, away), "notify.url"),
        (Reaction::Flood, ""),
    ] {
        let receiver = Receiver::start(&[reply]);
        let session = posting_to(&receiver, "");
        ask(&session, "first");
        ask(&session, "second");
        let posts = receiver.gets(2);
        let second = posts[1].body["message"].as_str().expect("text");
        assert!(second.starts_with("second"), "{reply:?}: {second}");
        eventually(&format!("{reply:?}: the log"), LONG, || {
            log(&session).contains(said).then_some(())
        });
    }
    assert!(other.posts().is_empty(), "a notice goes nowhere else");
}

#[test]
fn what_the_notifier_says_of_itself_has_a_bound() {
    let receiver = Receiver::start(&[Reaction::Status(404)]);
    let session = posting_to(&receiver, "");
    let path = session.state().join("logs/notifier.log");
    fs::write(&path, "x".repeat(1 << 20)).expect("a log");
    ask(&session, "first");
    eventually("why it is given up", LONG, || {
        log(&session).contains("404").then_some(())
    });
    assert!(log(&session).len() < 10_000);
}

#[test]
fn a_receiver_that_is_silent_is_not_waited_for() {
    let receiver = Receiver::start(&[Reaction::Silence]);
    let session = posting_to(&receiver, "");
    ask(&session, "first");
    receiver.gets(2);
}

#[test]
fn a_certificate_must_be_trusted() {
    let (receiver, certificate) = Receiver::secure(&[]);
    for trusted in [false, true] {
        let mut place = place(&format!(
            "[notify]\nurl = \"{}/alerts\"\ndesktop = false\n",
            receiver.address()
        ));
        let list = place.path().join("trusted.pem");
        if trusted {
            fs::write(&list, &certificate).expect("a list");
            place.set("SSL_CERT_FILE", &list);
        }
        let session = Session::with(place, &["--desktop"]);
        ask(&session, "first");
        if trusted {
            receiver.gets(1);
        } else {
            eventually("why it is not taken", LONG, || {
                let log = log(&session);
                (log.contains("tried again") || log.contains("ca-certificates")).then_some(())
            });
            assert!(receiver.posts().is_empty());
        }
    }
}

#[test]
fn a_token_is_read_from_its_file_and_shown_nowhere() {
    let receiver = Receiver::start(&[]);
    let session = posting_to(&receiver, "token_file = \"token\"");
    let token = session.place.path().join(".config/handover/token");
    fs::write(&token, "SECRET\n").expect("a token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).expect("a mode");
    ask(&session, "first");
    eventually("why it is not used", LONG, || {
        log(&session).contains("chmod 600").then_some(())
    });
    assert!(receiver.posts().is_empty());
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("a mode");
    ask(&session, "second");
    let posts = receiver.gets(1);
    assert_eq!(posts[0].header("authorization"), Some("Bearer SECRET"));
    assert!(!log(&session).contains("SECRET"));
    let shown = session.cli(&["config", "show"]).done().to_string();
    assert!(
        shown.contains("token_file") && !shown.contains("SECRET"),
        "{shown}"
    );
}

#[test]
fn a_lease_that_is_about_to_end_is_told() {
    let receiver = Receiver::start(&[]);
    let session = posting_to(&receiver, "on = [\"lease_warning\"]\n");
    ask(&session, "not to be told");
    // The warning comes a quarter of it ahead; a host that is held up for longer has nothing to warn of any more.
    let _holder = session.take(json!({"idleMs": 60_000, "maxMs": 8000}));
    let body = &receiver.gets(1)[0].body;
    assert_eq!(body["kind"], "lease_warning");
    assert_eq!(body["limit"], "maximum");
    assert_eq!(body["desktop"], "d1");
    assert_eq!(body["priority"], 3);
    assert!(
        body["leftMs"].as_u64().is_some_and(|left| left <= 2000),
        "{body}"
    );
    session.becomes("agent", LONG);
}

#[test]
fn the_configuration_may_change_while_the_host_runs() {
    let receiver = Receiver::start(&[]);
    let session = Session::with(place("[notify]\ndesktop = false\n"), &["--desktop"]);
    ask(&session, "to nobody");
    let url = format!(
        "[notify]\ntopic = \"alerts\"\ndesktop = false\nurl = \"{}\"\n",
        receiver.address()
    );
    // Whether the first is wanted was asked already, or it is told as well.
    configure(&session.place, &url);
    ask(&session, "to the root");
    all_told(&receiver, &["to the root".to_owned()]);
    for post in receiver.posts() {
        assert_eq!(
            (post.path.as_str(), &post.body["topic"]),
            ("/", &json!("alerts"))
        );
        assert_eq!(post.header("x-template"), None);
    }
}

#[test]
fn what_a_notifier_had_not_told_when_it_died_is_told_by_the_next() {
    let receiver = Receiver::start(&[Reaction::Silence]);
    let session = posting_to(&receiver, "");
    let id = ask(&session, "first");
    receiver.gets(1);
    let first = notifier(&session).expect("a notifier");
    signal(first, Signal::KILL);
    // Nobody gives the host another notice to hand over.
    let second = next_notifier(&session, &[first]);
    let posts = receiver.gets(2);
    assert_eq!(posts[1].body["requestId"], json!(id));
    assert_eq!(posts[1].body, posts[0].body);

    // One that dies before it has read anything has told nothing either.
    let mut before = vec![first, second];
    let reasons = ["second", "third"].map(str::to_owned);
    signal(second, Signal::KILL);
    for reason in &reasons {
        ask(&session, reason);
        let next = next_notifier(&session, &before);
        signal(next, Signal::KILL);
        before.push(next);
    }
    all_told(&receiver, &reasons);
}

#[test]
fn a_notifier_that_hangs_is_replaced_and_ends_with_its_host() {
    let receiver = Receiver::start(&[]);
    let session = posting_to(&receiver, "");
    ask(&session, "first");
    receiver.gets(1);
    let first = notifier(&session).expect("a notifier");
    // Requests are answered although nobody reads the notices, which are more than its pipe holds.
    signal(first, Signal::STOP);
    let reasons: Vec<_> = (0..60).map(|number| format!("{number} \u{e9}")).collect();
    for reason in &reasons {
        ask(&session, &format!("{reason}{}", "\u{e9}".repeat(4000)));
    }
    let second = next_notifier(&session, &[first]);
    eventually("the first is gone", LONG, || {
        (!processes::alive(first)).then_some(())
    });
    all_told(&receiver, &reasons);
    signal(session.host(), Signal::KILL);
    eventually("it ends with the host", LONG, || {
        (!processes::alive(second)).then_some(())
    });
}

#[test]
fn a_configuration_that_is_not_understood_stops_nothing() {
    let place = place("[notify]\nulr = \"http://127.0.0.1:9/x\"\n");
    let mut command = place.handover();
    let up = Running::start(command.args(["up", "--json"])).finish(LONG);
    assert_eq!(up.code, 0, "{up:?}");
    assert!(
        up.err.contains("line 2") && up.err.contains("notify.url"),
        "{up:?}"
    );
}

/// A session bus with nothing on it but who listens to all of it.
struct Bus {
    monitor: Running,
    _daemon: Running,
}

impl Bus {
    fn start(place: &mut Place) -> Self {
        let mut command = place.command("dbus-daemon");
        command.args(["--session", "--nofork", "--print-address"]);
        let daemon = Running::start(&mut command);
        let address = eventually("its address", LONG, || {
            let out = daemon.out();
            out.split_once('\n').map(|(line, _)| line.to_owned())
        });
        place.set("DBUS_SESSION_BUS_ADDRESS", &address);
        let mut command = place.command("dbus-monitor");
        let monitor = Running::start(command.args(["--address", &address]));
        eventually("it listens", LONG, || {
            monitor.out().contains("NameLost").then_some(())
        });
        Self {
            monitor,
            _daemon: daemon,
        }
    }
}

#[test]
fn a_request_is_shown_on_the_desktop_where_there_is_a_bus() {
    let mut place = place("");
    let bus = Bus::start(&mut place);
    let session = Session::with(place, &["--desktop"]);
    ask(&session, "log in <b>now</b> & then\u{1b}[2J");
    let said = eventually("a call on the bus", LONG, || {
        let out = bus.monitor.out();
        let at = out.find("member=Notify")?;
        let call = &out[at..];
        call.contains("int32 -1").then(|| call.to_owned())
    });
    for part in [
        "string \"handover\"",
        "asks for a person",
        "log in &lt;b&gt;now&lt;/b&gt; &amp; then\\u{1b}[2J",
        "string \"urgency\"",
        "byte 2",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Nobody shows notices there: that is said, and once.
    ask(&session, "again");
    eventually("both calls", LONG, || {
        (bus.monitor.out().matches("member=Notify").count() == 2).then_some(())
    });
    eventually("the log", LONG, || {
        log(&session).contains("ServiceUnknown").then_some(())
    });
    assert_eq!(log(&session).matches("ServiceUnknown").count(), 1);
}

/// `watch` at a terminal of its own.
struct Terminal {
    running: Running,
    input: std::process::ChildStdin,
}

impl Terminal {
    /// With a viewer that shows nothing.
    fn watch(session: &Session, options: &str) -> Self {
        let viewer = session.place.path().join("viewer");
        fs::write(&viewer, "#!/bin/sh\nexec sleep 600\n").expect("a viewer");
        fs::set_permissions(&viewer, fs::Permissions::from_mode(0o755)).expect("a mode");
        Self::watch_in(session, &viewer.display().to_string(), options)
    }

    fn watch_in(session: &Session, viewer: &str, options: &str) -> Self {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_handover"));
        // The shell becomes the program, so that a signal to the program reaches it whichever shell that is.
        let line = format!(
            "exec {} watch --viewer {viewer} {options}",
            program.display()
        );
        let mut command = session.place.command("script");
        command
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh")
            .args(["-qefc", &line, "/dev/null"]);
        let (running, input) = Running::start_with_input(&mut command);
        Self { running, input }
    }

    fn shows(&self, what: &str) {
        eventually(what, LONG, || {
            self.running.out().contains(what).then_some(())
        });
    }

    /// Types a line.
    fn types(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.input.write_all(line.as_bytes()).expect("typed");
    }

    fn watcher(&self) -> i32 {
        eventually("the program", LONG, || {
            let all = processes::descendants(self.running.pid());
            let program = env!("CARGO_BIN_EXE_handover");
            all.into_iter()
                .find(|&pid| command_line(pid).starts_with(&format!("{program} watch --viewer")))
        })
    }
}

#[test]
fn a_terminal_rings_and_says_so_in_its_title() {
    let session = Session::with(place("[notify]\ndesktop = false\n"), &["--desktop"]);
    let terminal = Terminal::watch(&session, "");
    terminal.shows("watching d1");
    ask(&session, "log in\u{1b}]2;evil\u{7}");
    terminal.shows("\u{1b}[22;2t\u{1b}]2;an agent asks for a person at d1: log in\\u{1b}]2;evil\\u{7}\u{1b}\\\u{7}");
    signal(terminal.watcher(), Signal::TERM);
    terminal.shows("\u{1b}[23;2t");
}

#[test]
fn a_terminal_without_a_viewer_is_called_to_until_the_host_ends() {
    let session = Session::with(place("[notify]\ndesktop = false\n"), &["--desktop"]);
    let terminal = Terminal::watch_in(&session, "none", "");
    terminal.shows("until you press Ctrl-C");
    ask(&session, "log in");
    terminal.shows("]2;an agent asks for a person at d1: log in\u{1b}\\\u{7}");
    session.cli(&["down"]).done();
    terminal.shows("the host is gone");
    let ended = terminal.running.finish(LONG);
    assert_eq!(ended.code, 3, "{ended:?}");
}

#[test]
fn a_terminal_says_that_control_is_about_to_end_and_settles() {
    let session = Session::with(
        place("[notify]\ndesktop = false\n[control]\nmax = \"8s\"\n"),
        &["--desktop"],
    );
    let terminal = Terminal::watch(&session, "--control");
    terminal.shows("\u{1b}]2;d1: control ends in");
    terminal.shows("\u{1b}[23;2t");
    session.becomes("agent", LONG);
    let ended = session.event("takeover_timeout");
    assert_eq!(ended["desktop"], "d1", "{ended}");
    // Which of the limits it was.
    terminal.shows("its time was over, which --max");
}

#[test]
fn a_person_who_asks_for_control_and_goes_is_taken_back() {
    let session = Session::with(place("[notify]\ndesktop = false\n"), &["--desktop"]);
    let mut terminal = Terminal::watch(&session, "--control");
    terminal.shows("you have control");
    let mut other = session.wire();
    other.send("control.request", json!({"note": "may I?"}));
    terminal.shows("asks for control (may I?): type give or refuse");
    drop(other);
    terminal.shows("no longer asks for control");
    terminal.shows("\u{1b}[23;2t");
    // The answer that was being typed gives nothing away.
    terminal.types("give");
    terminal.shows("nobody asks for control any more");
    assert_eq!(session.status()["control"], "human");

    let mut other = session.wire();
    let asking = other.send("control.request", json!({"note": "and now?"}));
    terminal.shows("asks for control (and now?)");
    terminal.types("give");
    other.answer(asking).expect("control");
    let ended = terminal.running.finish(LONG);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(ended.out.matches("no longer asks").count(), 1, "{ended:?}");
}

#[test]
fn a_person_can_turn_the_bell_off() {
    let session = Session::with(
        place("[notify]\ndesktop = false\nbell = false\n"),
        &["--desktop"],
    );
    let terminal = Terminal::watch(&session, "--control");
    terminal.shows("you have control");
    ask(&session, "log in");
    terminal.shows("asks for a person at d1: log in");
    signal(terminal.watcher(), Signal::INT);
    session.becomes("agent", LONG);
    let out = terminal.running.out();
    assert!(
        !out.contains('\u{7}') && !out.contains("\u{1b}]2;"),
        "{out:?}"
    );
}
