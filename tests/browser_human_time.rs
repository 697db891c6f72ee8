//! What an agent has set up in a browser does nothing in the pages of a person, and what the person sent and
//! saw is not there to be read afterwards. The browser's own pages are nobody else's at any time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::{
    DevTools, LONG, Session, attached, cdp_socket, click, clicks_until, eventually, shows, site,
    with_browser,
};

/// Answers one request with a small page, once all of it has come.
fn answer(mut stream: &TcpStream) -> io::Result<()> {
    let mut lines = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let line = line.trim().to_lowercase();
        if let Some(said) = line.strip_prefix("content-length:") {
            length = said.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    io::copy(&mut lines.take(length), &mut io::sink())?;
    let page = "<title>sent</title><script>console.log('spoken')</script>";
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
    write!(
        stream,
        "{head}\r\nContent-Length: {}\r\n\r\n{page}",
        page.len()
    )
}

/// A page that is one large button, which sends a form with a secret.
fn form(site: &str) -> String {
    format!(
        "data:text/html,<title>page</title><form method=post action='{site}'>\
         <input type=hidden name=pw value=hunter2><button style='width:700px;height:400px'>go</button></form>"
    )
}

/// A person takes control, sends the form and gives control back.
fn person_sends(session: &Session) {
    let mut holder = session.take(json!({}));
    click(&holder, 300, 300);
    shows(session, "sent");
    holder.give_back();
}

/// The name of the request that the page is the answer to.
fn request(client: &mut DevTools) -> Value {
    client.done("Page.getFrameTree", json!({}))["frameTree"]["frame"]["loaderId"].clone()
}

#[test]
fn a_script_for_new_documents_does_not_begin_in_a_page_that_a_person_opens() {
    let site = site(answer);
    let session = with_browser(&form(&site));
    let mut client = attached(&session);
    client.done("Page.enable", json!({}));
    let script = json!({"source": "window.injected = true"});
    let added = client.done("Page.addScriptToEvaluateOnNewDocument", script);
    person_sends(&session);
    let injected = "String(window.injected)";
    assert_eq!(client.value(injected), "undefined");
    let navigate = |client: &mut DevTools| {
        client.done("Page.navigate", json!({"url": site}));
        client.event("Page.loadEventFired", |_| true);
        client.value(injected)
    };
    eventually("it begins in what the agent opens", LONG, || {
        (navigate(&mut client) == "true").then_some(())
    });
    let remove = "Page.removeScriptToEvaluateOnNewDocument";
    client.done(remove, added);
    eventually("its client has taken it out", LONG, || {
        (navigate(&mut client) == "undefined").then_some(())
    });
}

#[test]
fn what_a_person_has_sent_and_a_page_has_said_is_not_told_afterwards() {
    let session = with_browser(&form(&site(answer)));
    let mut client = attached(&session);
    client.done("Network.enable", json!({}));
    person_sends(&session);
    let about = json!({"requestId": request(&mut client)});
    for read in ["Network.getRequestPostData", "Network.getResponseBody"] {
        let refused = client.refused(read, about.clone());
        assert_eq!(refused.number, -32000, "{read}");
    }
    // Nor to a session that asks for the first time.
    let mut other = attached(&session);
    other.done("Network.enable", json!({}));
    other.refused("Network.getRequestPostData", about);
    other.done("Runtime.enable", json!({}));
    other.value("console.log('later')");
    let said = other.event("Runtime.consoleAPICalled", |_| true);
    assert_eq!(said["args"][0]["value"], "later");
}

#[test]
fn a_page_that_an_agent_froze_is_active_for_a_person() {
    const SET: &str = "Page.setWebLifecycleState";
    let session = with_browser(
        "data:text/html,<title>page</title><button style='width:700px;height:400px' \
         onclick='document.title=`heard ${++heard}`'>go</button><script>heard=0</script>",
    );
    let mut stays = attached(&session);
    for heard in ["heard 1", "heard 2"] {
        // In the second round whoever froze it has left.
        let mut leaves = (heard == "heard 2").then(|| attached(&session));
        let agent = leaves.as_mut().unwrap_or(&mut stays);
        agent.done(SET, json!({"state": "frozen"}));
        drop(leaves);
        let mut holder = session.take(json!({}));
        let frozen = stays.refused(SET, json!({"state": "frozen"}));
        assert_eq!(frozen.code, "human_control_active");
        clicks_until(&session, &holder, (300, 300), heard);
        holder.give_back();
    }
}

/// The pages that there are.
fn pages(client: &mut DevTools) -> Vec<Value> {
    let targets = client.done("Target.getTargets", json!({}));
    let targets = targets["targetInfos"].as_array().expect("targets").iter();
    targets
        .filter(|target| target["type"] == "page")
        .cloned()
        .collect()
}

#[test]
fn the_browsers_own_pages_are_nobodys_but_a_persons() {
    let session = with_browser("data:text/html,<title>page</title>");
    let mut client = DevTools::connect(&cdp_socket(&session));
    for url in [
        "chrome://inspect/#remote-debugging",
        "devtools://devtools/bundled/inspector.html",
    ] {
        let refused = client.refused("Target.createTarget", json!({"url": url}));
        assert_eq!(refused.code, "bad_params", "{url}");
    }
    let page = pages(&mut client)[0]["targetId"].clone();
    for method in ["Target.openDevTools", "Extensions.loadUnpacked"] {
        let refused = client.refused(method, json!({"targetId": page, "path": "/"}));
        assert_eq!(refused.code, "bad_params", "{method}");
    }
    // Parts of the browser's window are targets too.
    let but_tabs = json!([{"type": "tab", "exclude": true}, {}]);
    let follow = json!({"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true, "filter": but_tabs});
    client.done("Target.setAutoAttach", follow);
    let targets = client.done("Target.getTargets", json!({"filter": [{}]}));
    let targets = targets["targetInfos"].as_array().expect("targets").clone();
    for target in targets
        .iter()
        .filter(|target| target["type"] == "browser_ui")
    {
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        assert_eq!(
            client.refused("Target.attachToTarget", attach).code,
            "bad_params"
        );
    }
}
