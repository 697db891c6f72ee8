//! The web console shows the pictures and the report of a session, and no other file.

use serde_json::json;

use crate::support::{Console, Session, Tab};

#[test]
fn pictures_and_the_report_of_a_session() {
    let mut session = Session::up();
    let id = session.id();
    let mut holder = session.take(json!({}));
    let path = holder.give_back()["screenshot"]
        .as_str()
        .expect("a picture")
        .to_owned();
    let name = path.rsplit('/').next().expect("a name").to_owned();
    let console = Console::start(&session.place, &[]);
    let cookie = console.enter(&console.url());
    let get = |path: &str| console.get(path, Some(&cookie));
    let reply = get(&format!("/api/picture/{id}/{name}"));
    assert_eq!(
        (reply.status, reply.field("content-type")),
        (200, Some("image/png"))
    );
    assert_eq!(reply.body, std::fs::read(&path).expect("the picture"));
    let secret = session.state().join("evidence/secret.png");
    std::fs::write(&secret, "no picture").expect("written");
    std::os::unix::fs::symlink(&path, session.state().join("evidence/link.png")).expect("a link");
    for other in [
        format!("/api/picture/{id}/nothing.png"),
        format!("/api/picture/{id}/secret.png"),
        format!("/api/picture/{id}/link.png"),
        format!("/api/picture/{id}/..%2fsession.db"),
        format!("/api/picture/{id}/%2e%2e%2fsession.json"),
        format!("/api/picture/{id}/..%5csession.db"),
        format!("/api/picture/{id}/{}", path.replace('/', "%2f")),
        format!("/api/picture/{id}/{name}%00"),
        format!("/api/picture/{id}/"),
        format!("/api/picture/{id}/x/{name}"),
        format!("/api/picture/..%2f{id}/{name}"),
        format!("/api/picture/zzzzzzzz/{name}"),
        format!("/api/picture/%2e/{name}"),
        format!("/api/picture/{id}/../{id}/{name}"),
        "/api/report/zzzzzzzz".to_owned(),
        "/api/report/..".to_owned(),
        "/api/report/..%2f..".to_owned(),
    ] {
        assert_eq!(get(&other).status, 404, "{other}");
    }
    let check = |what: &str| {
        let reply = get(&format!("/api/report/{id}"));
        assert_eq!(reply.status, 200, "{what}: {reply:?}");
        let policy = reply.field("content-security-policy").expect("a policy");
        assert!(
            policy.starts_with("sandbox;") && !policy.contains("unsafe"),
            "{policy}"
        );
        let page = reply.text();
        assert!(page.contains(&format!("Session {id}")), "{what}");
        assert!(page.contains("data:image/png;base64,"), "{what}");
    };
    check("while it runs");
    session.cli(&["down"]).done();
    check("when it has ended");
    assert_eq!(get(&format!("/api/picture/{id}/{name}")).status, 200);
    session.again();
    check("when it is back");
}

/// A browser of one desktop is told what pictures there are of it, and not where they lie.
#[test]
fn a_phone_is_told_the_names_of_pictures_alone() {
    let session = Session::up();
    let id = session.id();
    let path = session.take(json!({})).give_back()["screenshot"]
        .as_str()
        .expect("a picture")
        .to_owned();
    let name = path.rsplit('/').next().expect("a name");
    session
        .wire()
        .done("desktop.launch", json!({"command": ["/bin/true"]}));
    let console = Console::start(&session.place, &[]);
    let link = session.cli(&["console", "link", "d1"]).done();
    let cookie = console.enter(link["url"].as_str().expect("a link"));
    let mut phone = Tab::connect(&console, &cookie);
    let status = phone.done(&id, "control.status", json!({}));
    assert_eq!(status["lastHandBack"]["screenshot"], name, "{status}");
    let taken = phone.done(&id, "desktop.screenshot", json!({}));
    assert!(taken["path"].is_string(), "{taken}");
    let journal = phone.done(&id, "journal", json!({"since": 0}));
    phone.done(&id, "subscribe", json!({"since": 0}));
    let heard = phone.hear("the hand-back", |said| {
        said["params"]["kind"] == "takeover_return"
    });
    assert_eq!(heard["params"]["screenshot"], name, "{heard}");
    let home = session.place.path().to_string_lossy().into_owned();
    for told in [status, taken, journal, heard] {
        let told = told.to_string();
        assert!(!told.contains(&home) && !told.contains("\"/bin"), "{told}");
    }
    // Whoever sees everything is told as before.
    let all = console
        .browser()
        .done(&id, "control.status", json!({"desktop": "d1"}));
    assert_eq!(all["lastHandBack"]["screenshot"], path);
}
