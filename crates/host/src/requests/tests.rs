//! Requests of the session's own agents.

use std::sync::Arc;
use std::time::Duration;

use handover_protocol::{
    AgentId, AnswerParams, DesktopId, Hidden, RequestHumanParams, RequestId, RequestState,
    RequestStatusParams,
};
use handover_store::{Mode, Options, Store};

use super::{Question, Requests};
use crate::agents::{News, Newsroom};
use crate::callers::{Caller, CallerKind, ConnectionId, Evidence};

const PATIENCE: Duration = Duration::from_secs(20);

fn caller(kind: CallerKind) -> Caller {
    Caller {
        kind,
        uid: 0,
        pid: 7,
        start_ticks: 8,
        via: "test".into(),
        connection: ConnectionId(1),
        marked: None,
    }
}

fn person() -> Caller {
    caller(CallerKind::Human {
        evidence: Evidence::Tty,
    })
}

fn agent() -> AgentId {
    "abc234".into()
}

fn d1() -> DesktopId {
    "d1".into()
}

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::new(Mode::CreateOrExisting)).unwrap();
    (dir, store)
}

fn answer(request: &RequestId, text: &str) -> AnswerParams {
    AnswerParams {
        request_id: request.clone(),
        text: Hidden::new(text),
    }
}

async fn ask(requests: &Requests, kind: CallerKind) -> RequestId {
    let params = RequestHumanParams {
        desktop: None,
        reason: "which one?".into(),
        question: Some("red or blue?".into()),
    };
    let asked = requests.ask(&caller(kind), Some(d1()), params).await;
    asked.unwrap().request_id
}

async fn state(requests: &Requests, request: &RequestId) -> RequestState {
    let params = RequestStatusParams {
        request_id: request.clone(),
        wait_ms: None,
    };
    requests.status(&person(), params).await.unwrap().state
}

#[tokio::test]
async fn permission_is_given_in_text_and_by_nothing_else() {
    let (_dir, store) = store();
    let requests = Arc::new(Requests::open(store).await.unwrap());
    let (newsroom, mut news) = Newsroom::new();
    requests.tell(newsroom);
    let what = "run: echo $PASSWORD";
    let asked = requests.ask_permission(&agent(), Some(d1()), what).await;
    let request = asked.unwrap();
    let view = requests.of_agent(&agent()).unwrap();
    assert_eq!(view.question.as_deref(), Some(what));
    // Neither a takeover nor the end of the desktop says whether the command may run.
    requests.taken(&d1());
    requests.cancel(&d1());
    assert_eq!(state(&requests, &request).await, RequestState::Open);

    let question = Question::new(Arc::clone(&requests), request.clone());
    let waiting = tokio::spawn(question.answer());
    let answered = requests.answer(&person(), answer(&request, "no")).await;
    assert_eq!(answered.unwrap().state, RequestState::Answered);
    let heard = tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert_eq!(heard.unwrap().as_deref(), Some("no"));
    assert_eq!(requests.of_agent(&agent()), None);
    // The host has asked, so the agent is told nothing.
    news.try_recv().unwrap_err();
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_is_withdrawn() {
    let (_dir, store) = store();
    let requests = Arc::new(Requests::open(store).await.unwrap());
    let asked = requests.ask_permission(&agent(), None, "delete all").await;
    let request = asked.unwrap();
    drop(Question::new(Arc::clone(&requests), request.clone()).answer());
    assert_eq!(state(&requests, &request).await, RequestState::Cancelled);
    // Its asker has gone, and with it whoever might act on an answer.
    let late = requests.answer(&person(), answer(&request, "yes")).await;
    late.unwrap_err();
}

#[tokio::test]
async fn an_agent_hears_of_its_request_and_its_requests_end_with_it() {
    let (dir, store) = store();
    let requests = Requests::open(store.clone()).await.unwrap();
    let (newsroom, mut news) = Newsroom::new();
    requests.tell(newsroom);
    let own = || CallerKind::Agent { id: Some(agent()) };
    let first = ask(&requests, own()).await;
    let second = ask(&requests, own()).await;
    let foreign = ask(&requests, CallerKind::Agent { id: None }).await;
    let answered = requests.answer(&person(), answer(&first, "blue")).await;
    answered.unwrap();
    let told = news.try_recv().unwrap();
    assert!(
        matches!(&told, News::Answered { agent: who, request, text }
            if *who == agent() && request.request_id == first && text == "blue"),
        "{told:?}"
    );
    requests.cancel_of(&agent());
    assert_eq!(state(&requests, &second).await, RequestState::Cancelled);
    assert_eq!(state(&requests, &foreign).await, RequestState::Open);
    // The end of a desktop ends what was asked about it.
    let third = ask(&requests, own()).await;
    requests.cancel(&d1());
    let told = news.try_recv().unwrap();
    assert!(
        matches!(&told, News::Cancelled { request, .. } if request.request_id == third),
        "{told:?}"
    );

    let open = ask(&requests, own()).await;
    let outside = ask(&requests, CallerKind::Agent { id: None }).await;
    store.close().await.unwrap();
    let store = Store::open(dir.path(), Options::new(Mode::Existing)).unwrap();
    let requests = Requests::open(store).await.unwrap();
    assert_eq!(state(&requests, &open).await, RequestState::Cancelled);
    assert_eq!(state(&requests, &outside).await, RequestState::Open);
}

#[tokio::test]
async fn what_no_takeover_can_deal_with_is_answered_without_a_question() {
    let (_dir, store) = store();
    let requests = Requests::open(store).await.unwrap();
    for (desktop, allowed) in [(None, true), (Some(d1()), false)] {
        let params = RequestHumanParams {
            desktop: None,
            reason: "I am stuck".into(),
            question: None,
        };
        let asker = caller(CallerKind::Agent { id: Some(agent()) });
        let asked = requests.ask(&asker, desktop, params).await.unwrap();
        let text = answer(&asked.request_id, "go on");
        let answered = requests.answer(&person(), text).await;
        assert_eq!(answered.is_ok(), allowed);
    }
}
