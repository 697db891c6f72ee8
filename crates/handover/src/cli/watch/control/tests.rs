//! A takeover against a host that does as it is told.

use std::path::Path;
use std::sync::{Arc, Mutex};

use clap::Parser;
use handover_protocol::envelope::{Request, error_line, result_line};
use handover_protocol::{End, Refusal};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::super::super::context::GlobalArgs;
use super::*;

/// How the host stands, and what it was asked for.
#[derive(Debug, Default)]
struct State {
    /// How the lease ended, once it has.
    end: Option<&'static str>,
    /// The lease ends at the next renewal.
    loses_lease: bool,
    renewals: u32,
    returned: Vec<Value>,
}

type Shared = Arc<Mutex<State>>;

fn answer(state: &Shared, method: Method, params: &Value) -> Result<Value, Refusal> {
    let mut state = state.lock().unwrap();
    let stale = || Err(Refusal::new(ErrorCode::LeaseStale, "it has ended"));
    match method {
        Method::Hello => Ok(json!({
            "protocol": 1, "sessionId": "s", "version": "0", "callerToken": "t",
            "caller": {"kind": "human", "pid": 1, "uid": 0},
        })),
        Method::ControlAcquire => Ok(json!({
            "leaseId": "l-1", "token": "secret", "epoch": 4, "ttlMs": 400, "heartbeatMs": 20,
            "expiresInMs": 400, "foreignClients": [],
        })),
        Method::ControlRenew => {
            assert_eq!(params["token"], "secret");
            state.renewals += 1;
            if state.loses_lease {
                state.end = Some("timeout");
            }
            match state.end {
                Some(_) => stale(),
                None => Ok(json!({"expiresInMs": 400, "epoch": 4})),
            }
        }
        Method::ControlReturn => {
            if state.end.is_some() {
                return stale();
            }
            state.returned.push(params.clone());
            let end = if params["reason"] == "return" {
                "return"
            } else {
                "cancelled"
            };
            state.end = Some(end);
            Ok(json!({"reason": end, "heldMs": 9, "screenshot": null, "epoch": 5}))
        }
        Method::Subscribe => Ok(json!({"cursor": 0})),
        Method::Journal => {
            assert_eq!(params["kinds"], json!(["takeover_timeout"]));
            let end = |seq: u64, lease: &str, cause: &str| {
                json!({
                    "seq": seq, "at": "2026-01-31T09:30:00.250Z", "kind": "takeover_timeout",
                    "source": "host", "actor": {"uid": 1, "pid": 2}, "uid": 1, "pid": 2,
                    "desktop": "d1", "leaseId": lease, "cause": cause,
                })
            };
            let events = [
                end(1, "l-0", "idle"),
                end(2, "l-1", "maximum"),
                end(3, "l-2", "idle"),
            ];
            Ok(json!({"events": events, "next": 3, "head": ""}))
        }
        Method::ControlStatus => {
            let mut status = json!({
                "desktop": "d1", "control": "agent", "phase": "steady", "epoch": 5,
            });
            match state.end {
                Some(end) => {
                    status["lastHandBack"] = json!({
                        "end": end, "holder": "ada", "heldMs": 9, "note": null, "epoch": 5,
                        "screenshot": null, "windowsOpened": [], "windowsClosed": [],
                    })
                }
                None => {
                    status["lease"] = json!({
                        "leaseId": "l-1", "holder": "ada", "since": "2026-01-31T09:30:00.250Z",
                        "expiresInMs": 400, "viewer": "v1",
                    })
                }
            }
            Ok(status)
        }
        method => panic!("{method} was not expected"),
    }
}

async fn serve(stream: UnixStream, state: Shared) {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request = Request::parse(line.as_bytes()).unwrap();
        let (id, method) = (request.id.clone().unwrap(), request.method().unwrap());
        let answer = match answer(&state, method, &request.params.unwrap_or_default()) {
            Ok(result) => result_line(&id, &result),
            Err(refusal) => error_line(&id, refusal.into()),
        };
        if write.write_all(&answer).await.is_err() {
            return;
        }
    }
}

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

/// Runs `watch --control` with these further arguments; the state is that at its end.
fn watch(arguments: &[&str], state: State) -> (Result<(), Failure>, State) {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("attach.sock");
    let state = Arc::new(Mutex::new(state));
    let result = super::super::super::context::block_on(async {
        let listener = UnixListener::bind(&socket).unwrap();
        let host = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&host)));
            }
        });
        Ok(take(arguments, &socket).await)
    });
    (result.unwrap(), std::mem::take(&mut *state.lock().unwrap()))
}

async fn take(arguments: &[&str], socket: &Path) -> Result<(), Failure> {
    let arguments = ["watch", "--control"].iter().chain(arguments);
    let args = Command::try_parse_from(arguments).unwrap().args;
    let context = Context::new(GlobalArgs {
        json: true,
        ..GlobalArgs::default()
    });
    let session = Session::at(socket, &context).await?;
    let view = ViewOpenResult {
        viewer: "v1".into(),
        socket_path: "/view-v1.sock".to_owned(),
    };
    run(
        args,
        session,
        socket.to_owned(),
        "d1".into(),
        view,
        Attention::new(false),
        &context,
    )
    .await
}

#[test]
fn closing_the_viewer_returns_control_with_the_note() {
    let (result, state) = watch(&["--viewer", "true", "--note", "done"], State::default());
    result.unwrap();
    assert_eq!(state.returned.len(), 1);
    assert_eq!(state.returned[0]["reason"], "return");
    assert_eq!(state.returned[0]["note"], "done");
}

#[test]
fn a_viewer_that_fails_cancels() {
    for viewer in ["false", "/nonexistent/viewer"] {
        let (result, state) = watch(&["--viewer", viewer], State::default());
        assert_eq!(result.unwrap_err().code(), ErrorCode::Timeout);
        assert_eq!(state.returned[0]["reason"], "cancelled", "{viewer}");
    }
}

#[test]
fn a_lost_lease_is_a_timeout() {
    let lost = State {
        loses_lease: true,
        ..State::default()
    };
    let (result, state) = watch(&["--viewer", "none"], lost);
    let failure = result.unwrap_err();
    assert_eq!(failure.code(), ErrorCode::Timeout);
    // Why is in the record of this very lease's end.
    assert!(failure.message().contains("--max"), "{}", failure.message());
    assert!(state.returned.is_empty());
    assert_eq!(state.renewals, 1, "a lost lease is not renewed again");
}

#[test]
fn what_the_host_ended_first_is_what_is_told() {
    // The viewer closes, and the host has ended the takeover for it before we ask.
    let ended = State {
        end: Some("return"),
        ..State::default()
    };
    let (result, state) = watch(&["--viewer", "true"], ended);
    result.unwrap();
    assert!(state.returned.is_empty());

    let revoked = State {
        end: Some("revoked"),
        ..State::default()
    };
    let (result, _) = watch(&["--viewer", "none"], revoked);
    let failure = result.unwrap_err();
    assert_eq!(failure.code(), ErrorCode::LeaseStale);
    assert!(
        failure.message().contains("somebody else"),
        "{}",
        failure.message()
    );
    assert_eq!(serde_json::to_value(End::Revoked).unwrap(), "revoked");
}
