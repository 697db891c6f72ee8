//! Lines in, answers out.

use handover_protocol::server::calls::MAX_CALLS;
use handover_protocol::{MAX_REQUEST, Method, PROTOCOL_VERSION};
use serde_json::json;

use super::{Harness, outcome, until};

#[tokio::test]
async fn every_method_is_answered() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    harness.session.desktop().slow.add_permits(1);
    for &method in Method::ALL {
        let params = match method {
            Method::DesktopLaunch => json!({"command": ["true"]}),
            // It would wait for the lines it makes itself.
            Method::Subscribe => json!({"kinds": ["none"]}),
            _ => json!({}),
        };
        match client.call(method, params).await {
            Ok(_) => {}
            Err(code) if method == Method::Spawn => assert_eq!(code, "caller_refused"),
            // Those that need parameters say so.
            Err(code) => assert!(
                ["bad_params", "lease_stale"].contains(&code.as_str()),
                "{method}: {code}"
            ),
        }
    }
}

#[tokio::test]
async fn hello_greets_and_another_version_is_told() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    let greeted = client.hello(json!({})).await.unwrap();
    assert_eq!(greeted["protocol"], PROTOCOL_VERSION);
    assert_eq!(greeted["sessionId"], "s1");
    assert_eq!(greeted["caller"]["kind"], "human");
    assert_eq!(greeted["caller"]["pid"], std::process::id());
    assert_eq!(greeted["callerToken"].as_str().unwrap().len(), 64);
    // A newer client may say more than this host knows.
    let refused = client.hello(json!({"protocol": 2, "more": 1})).await;
    assert_eq!(refused, Err("protocol_mismatch".into()));
    assert_eq!(
        client.call(Method::Ping, json!({})).await.unwrap()["protocol"],
        1
    );
}

#[tokio::test]
async fn bad_lines_are_answered_and_cost_nothing() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    let mut refused = async |line: &str| {
        client.write(line).await;
        let answer = client.line().await.unwrap();
        let error = &answer["error"];
        assert_eq!(answer["jsonrpc"], "2.0");
        assert!(error["message"].as_str().unwrap().len() > 10);
        (
            error["code"].as_i64().unwrap(),
            error["data"]["code"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(refused("nonsense\n").await, (-32700, "malformed".into()));
    assert_eq!(refused("[]\n").await, (-32600, "malformed".into()));
    let long = format!("{}\n", "é".repeat(MAX_REQUEST / 2 + 1));
    assert_eq!(refused(&long).await, (-32600, "line_too_long".into()));
    let unknown = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"fly\"}\n";
    assert_eq!(refused(unknown).await, (-32601, "method_unknown".into()));
    let bad = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"desktop.click\",\"params\":{\"x\":1}}\n";
    assert_eq!(refused(bad).await, (-32602, "bad_params".into()));
    assert!(client.call(Method::Ping, json!({})).await.is_ok());

    let id = client.send("fly", json!({})).await;
    let supported = client.answer(id).await["error"]["data"]["supported"].clone();
    assert_eq!(supported.as_array().unwrap().len(), Method::ALL.len());
}

#[tokio::test]
async fn the_longest_request_is_taken_and_a_notification_is_not_answered() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    let frame =
        json!({"jsonrpc": "2.0", "id": 0, "method": "desktop.type", "params": {"text": ""}});
    let text = "x".repeat(MAX_REQUEST - frame.to_string().len());
    client.send("desktop.type", json!({"text": text})).await;
    client
        .write("{\"jsonrpc\":\"2.0\",\"method\":\"desktop.click\",\"params\":{\"x\":5,\"y\":5}}\n")
        .await;
    assert_eq!(client.line().await.unwrap()["id"], 1);
    assert!(client.call(Method::Ping, json!({})).await.is_ok());
    let log = harness.session.desktop().log;
    assert_eq!(log.lock().unwrap().last().unwrap(), "click 5");
}

#[tokio::test]
async fn calls_arrive_in_the_order_of_their_lines() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    let lines: String = (0..500)
        .map(|x| {
            let params = json!({"x": x, "y": 0});
            let line =
                json!({"jsonrpc": "2.0", "id": x, "method": "desktop.click", "params": params});
            format!("{line}\n")
        })
        .collect();
    client.write(&lines).await;
    client.answer(499).await;
    let expected: Vec<_> = (0..500).map(|x| format!("click {x}")).collect();
    assert_eq!(*harness.session.desktop().log.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_slow_call_holds_up_no_other_and_their_number_is_bounded() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    let slow = json!({"command": ["sleep"]});
    let first = client.send("desktop.launch", slow.clone()).await;
    assert!(client.call(Method::Ping, json!({})).await.is_ok());
    for _ in 1..MAX_CALLS {
        client.send("desktop.launch", slow.clone()).await;
    }
    assert_eq!(
        client.call(Method::Ping, json!({})).await,
        Err("queue_full".into())
    );
    harness.session.desktop().slow.add_permits(MAX_CALLS);
    assert!(outcome(&client.answer(first).await).is_ok());
    for id in first + 2..first + 1 + MAX_CALLS as u64 {
        client.answer(id).await;
    }
    assert!(client.call(Method::Ping, json!({})).await.is_ok());
}

#[tokio::test]
async fn a_fault_of_the_host_costs_one_call() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    let refused = client
        .call(Method::DesktopMove, json!({"x": 1, "y": 1}))
        .await;
    assert_eq!(refused, Err("internal".into()));
    assert!(client.call(Method::Ping, json!({})).await.is_ok());
}

#[tokio::test]
async fn a_desktop_may_be_left_out_if_there_is_one() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    let at = |desktop: &str| json!({"desktop": desktop, "x": 1, "y": 1});
    assert!(client.call(Method::DesktopClick, at("d1")).await.is_ok());
    assert_eq!(
        client.call(Method::DesktopClick, at("d9")).await,
        Err("desktop_unknown".into())
    );
    client.call(Method::DesktopNew, json!({})).await.unwrap();
    assert_eq!(
        client.call(Method::ControlStatus, json!({})).await,
        Err("bad_params".into())
    );
    for name in ["d1", "d2"] {
        client
            .call(Method::DesktopDestroy, json!({"desktop": name}))
            .await
            .unwrap();
    }
    let id = client.send("control.status", json!({})).await;
    let answer = client.answer(id).await;
    assert_eq!(answer["error"]["data"]["code"], "desktop_unknown");
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("desktop.new")
    );
}

#[tokio::test]
async fn a_lease_is_found_by_its_name_alone() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    client.call(Method::DesktopNew, json!({})).await.unwrap();
    let granted = client
        .call(Method::ControlAcquire, json!({"desktop": "d2"}))
        .await
        .unwrap();
    let lease = json!({"leaseId": granted["leaseId"], "token": granted["token"]});
    assert!(client.call(Method::ControlRenew, lease).await.is_ok());
    let log = harness.session.desktops.lock().unwrap()[1].log.clone();
    until("the other desktop is asked", || {
        *log.lock().unwrap() == ["renew l-d2"]
    })
    .await;
    let lost = json!({"leaseId": "l-0", "token": "x"});
    for method in [
        Method::ControlRenew,
        Method::ControlReclaim,
        Method::ControlReturn,
    ] {
        assert_eq!(
            client.call(method, lost.clone()).await,
            Err("lease_stale".into())
        );
    }
}

#[tokio::test]
async fn a_session_with_a_person_in_control_is_stopped_by_force_only() {
    let harness = Harness::start().await;
    let mut client = harness.connect().await;
    let lease = json!({"leaseId": "l-1", "holder": "ada", "since": "2026-01-01T00:00:00.000Z",
        "expiresInMs": 1000, "viewer": null});
    let lease = serde_json::from_value(lease).unwrap();
    *harness.session.desktop().lease.lock().unwrap() = Some(lease);
    let id = client.send("stop", json!({})).await;
    let answer = client.answer(id).await;
    assert_eq!(answer["error"]["data"]["code"], "human_lease_held");
    assert_eq!(answer["error"]["data"]["lease"]["holder"], "ada");
    let paused = client.call(Method::StopAllInput, json!({})).await.unwrap();
    assert_eq!(
        (
            paused["desktops"][0]["id"].clone(),
            paused["agents"].clone()
        ),
        (json!("d1"), json!([{"id": "parent", "status": "aborted"}]))
    );
    assert_eq!(
        *harness.session.desktop().log.lock().unwrap(),
        ["pause Some(true)"]
    );
    let stopped = client
        .call(Method::Stop, json!({"force": true}))
        .await
        .unwrap();
    assert_eq!(stopped, json!({"sessionId": "s1"}));
}
