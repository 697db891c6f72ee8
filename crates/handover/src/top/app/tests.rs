use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use handover_protocol::SteerWhen;
use ratatui::layout::Rect;

use super::*;
use crate::overview::testing::{list, manifest};

const NOW: Now = Now {
    ms: 0,
    wall: Timestamp(1_769_852_400_000),
};

fn app() -> App {
    let mut app = App::new(NOW, 0xd1);
    let found = News::Found(Box::new(manifest("s1", "shop")));
    app.hear(&"s1".into(), found);
    app.hear(&"s1".into(), News::Listed(Box::new(list("s1"))));
    app
}

fn press(app: &mut App, keys: &str) -> Option<Todo> {
    let mut todo = None;
    for c in keys.chars() {
        let (code, modifiers) = match c {
            '\n' => (KeyCode::Enter, KeyModifiers::NONE),
            '\r' => (KeyCode::Enter, KeyModifiers::ALT),
            '\t' => (KeyCode::Tab, KeyModifiers::NONE),
            '\u{1b}' => (KeyCode::Esc, KeyModifiers::NONE),
            c => (KeyCode::Char(c), KeyModifiers::NONE),
        };
        todo = app.key(KeyEvent::new(code, modifiers));
    }
    todo
}

fn select(app: &mut App, part: Part) {
    app.used = true;
    app.selected = Some(Key {
        session: "s1".into(),
        part,
    });
    app.settle();
}

fn act(deed: Deed) -> Option<Todo> {
    let session = "s1".into();
    Some(Todo::Act(Act { session, deed }))
}

fn bad(app: &App) -> &str {
    match &app.status {
        Some(Status::Bad(text)) => text,
        other => panic!("nothing went wrong: {other:?}"),
    }
}

#[test]
fn a_message_of_two_lines_at_a_chosen_moment() {
    let mut app = app();
    select(&mut app, Part::Agent("k7m2".into()));
    let todo = press(&mut app, "sone\rtwo\t\n");
    let deed = Deed::Steer {
        agent: "k7m2".into(),
        id: "top-00000000000000d1-1".into(),
        text: "one\ntwo".to_owned(),
        when: Some(SteerWhen::Now),
    };
    assert_eq!(todo, act(deed));
    assert!(matches!(app.mode, Mode::Browse));
}

#[test]
fn a_message_that_did_not_arrive_is_not_lost() {
    let mut app = app();
    select(&mut app, Part::Agent("k7m2".into()));
    let Some(Todo::Act(act)) = press(&mut app, "shello\n") else {
        panic!("nothing is sent");
    };
    app.done(&act, Err("the disk is full [storage_failed]".to_owned()));
    assert_eq!(bad(&app), "the disk is full [storage_failed]");
    let Some(Todo::Act(again)) = press(&mut app, "s\n") else {
        panic!("nothing is sent");
    };
    // Under the same number: if it had arrived after all, it is not said twice.
    assert_eq!(again, act);
    press(&mut app, "s\u{1b}");
    let Some(Todo::Act(again)) = press(&mut app, "s\n") else {
        panic!("nothing is sent");
    };
    assert_eq!(again, act);
    app.done(&again, Ok(Done::Steered(number(&again))));
    // What has arrived is not sent twice by mistake.
    assert_eq!(press(&mut app, "s\n"), None);
    assert_eq!(bad(&app), "nothing was sent: the text is empty");
}

fn number(act: &Act) -> SteerId {
    match &act.deed {
        Deed::Steer { id, .. } => id.clone(),
        other => panic!("no message: {other:?}"),
    }
}

#[test]
fn another_message_has_another_number() {
    let mut app = app();
    select(&mut app, Part::Agent("k7m2".into()));
    let mut sent = |keys: &str| match press(&mut app, keys) {
        Some(Todo::Act(act)) => act,
        other => panic!("nothing is sent: {other:?}"),
    };
    let acts = [sent("shello\n"), sent("s, you\n"), sent("s\n")];
    let numbers = acts.each_ref().map(number);
    assert_ne!(numbers[0], numbers[1], "another text");
    assert_eq!(numbers[1], numbers[2], "the same");
    // The first one arrived late: the second still waits for its answer.
    app.done(&acts[0], Ok(Done::Steered(numbers[0].clone())));
    let Some(Todo::Act(again)) = press(&mut app, "s\n") else {
        panic!("nothing is sent");
    };
    assert_eq!(again, acts[1]);
    app.done(&again, Ok(Done::Steered(number(&again))));
    let Some(Todo::Act(new)) = press(&mut app, "shello, you\n") else {
        panic!("nothing is sent");
    };
    assert_ne!(number(&new), number(&again), "said twice on purpose");
}

#[test]
fn what_takes_no_message_says_why() {
    let mut app = app();
    select(&mut app, Part::Agent("z9y8".into()));
    assert_eq!(press(&mut app, "s"), None);
    assert_eq!(bad(&app), "z9y8 takes no messages: it is done");
    select(&mut app, Part::Whole);
    press(&mut app, "s");
    assert_eq!(bad(&app), "select an agent to send it a message");
}

#[test]
fn nothing_ends_without_a_yes() {
    let mut app = app();
    select(&mut app, Part::Agent("k7m2".into()));
    for no in ["an", "a\u{1b}", "a\n", "aq"] {
        assert_eq!(press(&mut app, no), None);
        assert!(matches!(app.mode, Mode::Browse));
    }
    press(&mut app, "a");
    let Mode::Confirm(ask, _) = &app.mode else {
        panic!("nothing is asked");
    };
    // The child that has ended does not end again.
    let ending = ask.ending(&app.overview);
    insta::assert_snapshot!(ending.join("\n"), @r"
    k7m2 checkout running buy milk and oats
    └─ a3b4 docs waiting read the terms
    ");
    let todo = press(&mut app, "y");
    let deed = Deed::Abort("k7m2".into());
    let session = "s1".into();
    assert_eq!(todo, Some(Todo::Acts(vec![Act { session, deed }])));
    select(&mut app, Part::Agent("z9y8".into()));
    assert_eq!(press(&mut app, "ay"), None);
}

#[test]
fn a_question_goes_when_there_is_nothing_left_to_ask() {
    let mut app = app();
    select(&mut app, Part::Agent("k7m2".into()));
    press(&mut app, "a");
    app.hear(&"s1".into(), News::Gone);
    assert!(matches!(app.mode, Mode::Browse));
    assert_eq!(bad(&app), "the host of that session has ended");
    assert_eq!(press(&mut app, "y"), None);
}

#[test]
fn everything_stops_here_or_everywhere() {
    let mut app = app();
    let stop = |id: &str| Act {
        session: id.into(),
        deed: Deed::StopAll,
    };
    // With one session there is nothing wider.
    assert_eq!(press(&mut app, "xA"), None);
    assert_eq!(press(&mut app, "y"), Some(Todo::Acts(vec![stop("s1")])));
    let found = News::Found(Box::new(manifest("s2", "docs")));
    app.hear(&"s2".into(), found);
    assert_eq!(press(&mut app, "xA"), None);
    let Mode::Confirm(ask, _) = &app.mode else {
        panic!("nothing is asked");
    };
    assert_eq!(
        ask.question(&app.overview),
        "stop all of this in 2 sessions?"
    );
    let ending = ask.ending(&app.overview);
    assert!(ending.contains(&"shop: pause desktop d1 (human)".to_owned()));
    let todo = press(&mut app, "y");
    assert_eq!(todo, Some(Todo::Acts(vec![stop("s1"), stop("s2")])));
    // Also while a filter hides them all.
    press(&mut app, "/nothing like it\nx");
    let todo = press(&mut app, "y");
    assert_eq!(todo, Some(Todo::Acts(vec![stop("s1"), stop("s2")])));
}

#[test]
fn a_desktop_is_taken_returned_paused_and_resumed() {
    let mut app = app();
    select(&mut app, Part::Desktop("d1".into()));
    let take = Todo::Take("s1".into(), "d1".into());
    assert_eq!(press(&mut app, "t"), Some(take));
    let todo = press(&mut app, "rlogged in\n");
    let note = Some("logged in".to_owned());
    let desktop = "d1".into();
    assert_eq!(todo, act(Deed::Return { desktop, note }));
    let todo = press(&mut app, "r\n");
    let desktop = "d1".into();
    assert_eq!(
        todo,
        act(Deed::Return {
            desktop,
            note: None
        })
    );
    assert_eq!(press(&mut app, "p"), None, "somebody has control of it");
    assert!(matches!(app.mode, Mode::Confirm(Ask::Pause(..), _)));
    let pause = Act {
        session: "s1".into(),
        deed: Deed::Pause("d1".into()),
    };
    assert_eq!(press(&mut app, "y"), Some(Todo::Acts(vec![pause])));
    select(&mut app, Part::Desktop("d2".into()));
    assert_eq!(press(&mut app, "p"), act(Deed::Pause("d2".into())));
    assert_eq!(press(&mut app, "r"), None);
    assert_eq!(bad(&app), "nobody has control of d2");
    let mut paused = list("s1");
    paused.desktops[1].control = handover_protocol::Control::Paused;
    app.hear(&"s1".into(), News::Listed(Box::new(paused)));
    assert_eq!(press(&mut app, "p"), act(Deed::Resume("d2".into())));
    // Of two desktops none is meant by a row that is neither.
    select(&mut app, Part::Whole);
    assert_eq!(press(&mut app, "t"), None);
}

#[test]
fn a_request_is_answered_or_taken_over() {
    let mut app = app();
    select(&mut app, Part::Request("r1".into()));
    let todo = press(&mut app, "ysoy\n");
    let deed = Deed::Answer("r1".into(), "soy".to_owned());
    assert_eq!(todo, act(deed));
    let mut taken = list("s1");
    taken.requests[0].question = None;
    taken.requests[0].desktop = Some("d2".into());
    app.hear(&"s1".into(), News::Listed(Box::new(taken)));
    assert_eq!(press(&mut app, "y"), None);
    assert!(bad(&app).contains("press t"), "{}", bad(&app));
    let take = Todo::Take("s1".into(), "d2".into());
    assert_eq!(press(&mut app, "t"), Some(take));
}

#[test]
fn the_selection_stays_on_its_row_and_moves_on_when_that_goes() {
    let mut app = app();
    select(&mut app, Part::Agent("a3b4".into()));
    let found = News::Found(Box::new(manifest("s0", "first")));
    app.hear(&"s0".into(), found);
    let key = app.selected.clone().unwrap();
    assert_eq!(key.part, Part::Agent("a3b4".into()));
    let mut fewer = list("s1");
    fewer.agents.truncate(1);
    app.hear(&"s1".into(), News::Listed(Box::new(fewer)));
    assert!(app.selected.is_some());
    assert!(app.index(&app.rows()).is_some());
}

#[test]
fn a_filter_is_seen_at_once_and_can_be_given_up() {
    let mut app = app();
    let all = app.rows().len();
    press(&mut app, "/codex");
    assert_eq!(app.rows().len(), 2);
    press(&mut app, "\n");
    assert_eq!(app.rows().len(), 2);
    press(&mut app, "/x\u{1b}");
    assert_eq!(app.choice.filter, "codex");
    press(&mut app, "\u{1b}");
    assert_eq!(app.rows().len(), all);
}

#[test]
fn at_first_the_first_row_is_selected_whoever_answers_first() {
    let mut app = App::new(NOW, 0);
    for id in ["s3", "s2"] {
        let found = News::Found(Box::new(manifest(id, id)));
        app.hear(&id.into(), found);
    }
    // The one that needs somebody comes first, as soon as that is known.
    let found = News::Found(Box::new(manifest("s1", "shop")));
    app.hear(&"s1".into(), found);
    app.hear(&"s1".into(), News::Listed(Box::new(list("s1"))));
    let selected = |app: &App| app.selected.clone().unwrap().session;
    assert_eq!(selected(&app), "s1".into());
    press(&mut app, "G");
    assert_eq!(selected(&app), app.rows().last().unwrap().key.session);
    assert_ne!(selected(&app), "s1".into());
    app.tick(1_000, NOW.wall);
    assert_ne!(selected(&app), "s1".into());
}

#[test]
fn what_a_filter_finds_is_selected() {
    let mut app = app();
    let selected = |app: &App| app.selected.clone().unwrap().part;
    press(&mut app, "g/codex\n");
    assert_eq!(selected(&app), Part::Agent("a3b4".into()));
    press(&mut app, "k");
    app.tick(1_000, NOW.wall);
    assert_eq!(selected(&app), Part::Whole, "who moves on stays there");
    // What fits is not left.
    press(&mut app, "\u{1b}");
    select(&mut app, Part::Agent("k7m2".into()));
    press(&mut app, "/h");
    assert_eq!(selected(&app), Part::Agent("k7m2".into()));
    app.paste("old");
    assert_eq!(app.rows().len(), 0);
}

#[test]
fn clicks_do_what_keys_do() {
    let mut app = app();
    let agent = Key {
        session: "s1".into(),
        part: Part::Agent("k7m2".into()),
    };
    app.hits.put(Rect::new(0, 1, 40, 1), Hit::Row(agent));
    // Since it was drawn a row above it has gone.
    let mut fewer = list("s1");
    fewer.requests.clear();
    app.hear(&"s1".into(), News::Listed(Box::new(fewer)));
    app.hits.put(
        Rect::new(0, 9, 8, 1),
        Hit::Key(KeyCode::Char('a'), KeyModifiers::NONE),
    );
    let click = |app: &mut App, column, row| {
        app.mouse(MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column,
            row,
            modifiers: KeyModifiers::NONE,
        })
    };
    click(&mut app, 3, 1);
    let key = app.selected.clone().unwrap();
    assert_eq!(key.part, Part::Agent("k7m2".into()));
    click(&mut app, 3, 1);
    assert!(app.full);
    click(&mut app, 2, 9);
    assert!(matches!(app.mode, Mode::Confirm(..)));
    // Behind a question nothing is selected.
    click(&mut app, 3, 1);
    assert!(matches!(app.mode, Mode::Confirm(..)));
    assert_eq!(click(&mut app, 30, 9), None);
}

#[test]
fn keys_that_end_and_suspend() {
    let mut app = app();
    assert_eq!(press(&mut app, "q"), Some(Todo::Quit));
    let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
    assert_eq!(app.key(control('c')), Some(Todo::Interrupt));
    assert_eq!(app.key(control('z')), Some(Todo::Suspend));
    press(&mut app, "?");
    assert_eq!(app.key(KeyEvent::from(KeyCode::Char('q'))), None);
    assert!(matches!(app.mode, Mode::Browse));
}
