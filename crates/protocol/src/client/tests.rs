use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};

use super::*;
use crate::envelope::{Request, error_line, notification_line, result_line};
use crate::{ControlStatusParams, PingParams, PingResult};

/// Far longer than anything here takes.
const LONG: Option<Duration> = Some(Duration::from_secs(60));

struct Host {
    lines: Lines<BufReader<OwnedReadHalf>>,
    socket: OwnedWriteHalf,
}

impl Host {
    async fn request(&mut self) -> Request {
        let line = self.lines.next_line().await.unwrap().unwrap();
        Request::parse(line.as_bytes()).unwrap()
    }

    async fn send(&mut self, line: &[u8]) {
        self.socket.write_all(line).await.unwrap();
    }
}

fn pair() -> (Client, Notifications, Host) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (client, notifications) = Client::over(ours);
    let (read, socket) = theirs.into_split();
    (
        client,
        notifications,
        Host {
            lines: BufReader::new(read).lines(),
            socket,
        },
    )
}

#[tokio::test]
async fn answers_find_their_calls_in_any_order() {
    let (client, _notifications, mut host) = pair();
    let ping = || client.call::<_, PingResult>(Method::Ping, &PingParams {}, LONG);
    let serve = async {
        let (first, second) = (host.request().await, host.request().await);
        for (request, version) in [(second, "2"), (first, "1")] {
            let result = json!({"protocol": 1, "version": version});
            host.send(&result_line(&request.id.unwrap(), &result)).await;
        }
    };
    let (first, second, ()) = tokio::join!(ping(), ping(), serve);
    assert_eq!(first.unwrap().version, "1");
    assert_eq!(second.unwrap().version, "2");
}

#[tokio::test]
async fn a_refusal_keeps_its_facts() {
    let (client, _notifications, mut host) = pair();
    let serve = async {
        let request = host.request().await;
        assert_eq!(request.method(), Ok(Method::ControlStatus));
        let refusal = Refusal::new(ErrorCode::DesktopUnknown, "no").with("desktops", ["d1"]);
        host.send(&error_line(&request.id.unwrap(), refusal.into()))
            .await;
    };
    let params = ControlStatusParams::default();
    let (answer, ()) = tokio::join!(
        client.call_value(Method::ControlStatus, &params, LONG),
        serve
    );
    let refusal = Refusal::from(answer.unwrap_err());
    assert_eq!(refusal.code, ErrorCode::DesktopUnknown);
    assert_eq!(refusal.data["desktops"], json!(["d1"]));
}

#[tokio::test]
async fn every_call_fails_when_the_host_dies() {
    let (client, _notifications, mut host) = pair();
    let ping = || client.call_value(Method::Ping, &PingParams {}, None);
    let serve = async {
        host.request().await;
        host.request().await;
        // Half an answer is none.
        host.send(br#"{"jsonrpc":"2.0","id":1,"result":{"#).await;
        drop(host);
    };
    let (first, second, ()) = tokio::join!(ping(), ping(), serve);
    assert!(matches!(first, Err(ClientError::Closed)));
    assert!(matches!(second, Err(ClientError::Closed)));
    assert!(matches!(ping().await, Err(ClientError::Closed)));
}

#[tokio::test]
async fn what_the_host_says_of_the_connection_is_why_every_call_fails() {
    let (client, _notifications, mut host) = pair();
    let ping = || client.call_value(Method::Ping, &PingParams {}, None);
    let serve = async {
        host.request().await;
        let refusal = Refusal::new(ErrorCode::QueueFull, "no room");
        host.send(&error_line(&Id::Null, refusal.into())).await;
        drop(host);
    };
    let (answer, ()) = tokio::join!(ping(), serve);
    assert_eq!(answer.unwrap_err().code(), ErrorCode::QueueFull);
    assert!(client.is_closed());
    assert_eq!(ping().await.unwrap_err().code(), ErrorCode::QueueFull);
}

#[tokio::test(start_paused = true)]
async fn a_silent_host_runs_into_the_timeout_and_a_late_answer_harms_nobody() {
    let (client, _notifications, mut host) = pair();
    let after = Duration::from_secs(10);
    let answer = client
        .call_value(Method::Ping, &PingParams {}, Some(after))
        .await;
    assert!(matches!(
        answer,
        Err(ClientError::Timeout { method: "ping", .. })
    ));
    assert!(
        client
            .connection
            .waiting
            .lock()
            .as_ref()
            .unwrap()
            .is_empty()
    );

    let late = host.request().await;
    host.send(&result_line(&late.id.unwrap(), &json!({}))).await;
    let serve = async {
        let request = host.request().await;
        host.send(&result_line(&request.id.unwrap(), &json!({"n": 2})))
            .await;
    };
    let (answer, ()) = tokio::join!(client.call_value(Method::Ping, &PingParams {}, None), serve);
    assert_eq!(answer.unwrap(), json!({"n": 2}));
}

#[tokio::test]
async fn notifications_arrive_in_order() {
    let (_client, mut notifications, mut host) = pair();
    for n in 1..=3 {
        host.send(&notification_line("event", &json!({"seq": n})).unwrap())
            .await;
    }
    drop(host);
    let mut seen = Vec::new();
    while let Some(news) = notifications.recv().await {
        assert_eq!(news.method, "event");
        seen.push(news.params["seq"].as_u64().unwrap());
    }
    assert_eq!(seen, [1, 2, 3]);
}

#[tokio::test]
async fn the_connection_closes_with_the_last_client() {
    let (client, _notifications, mut host) = pair();
    drop(client.clone());
    client
        .connection
        .lines
        .send(b"still here\n".to_vec())
        .unwrap();
    assert_eq!(
        host.lines.next_line().await.unwrap().as_deref(),
        Some("still here")
    );
    drop(client);
    assert_eq!(host.lines.next_line().await.unwrap(), None);
}

#[tokio::test]
async fn no_socket_is_a_clear_error() {
    let path = Path::new("/nonexistent/attach.sock");
    let error = Client::connect(path, CONNECT_TIMEOUT).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::SessionUnknown);
    assert!(error.to_string().contains("/nonexistent/attach.sock"));
}

#[tokio::test]
async fn a_request_over_the_limit_is_not_sent() {
    let (client, _notifications, _host) = pair();
    let params = json!({"text": "x".repeat(MAX_REQUEST)});
    let answer = client.call_value(Method::DesktopType, &params, LONG).await;
    assert!(matches!(answer, Err(ClientError::TooLong)));
}
