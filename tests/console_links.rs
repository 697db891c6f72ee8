//! A link to one desktop opens that desktop, once, for as long as it says; and other machines reach the
//! console by TLS alone.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use handover_protocol::Method;
use serde_json::{Value, json};
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    Stream,
};

use crate::support::{Console, LONG, Place, Running, SHORT, Session, Signal, Tab, eventually};

#[test]
fn the_command_line_asks_for_links() {
    let session = Session::up();
    let link = |options: &[&str]| session.cli(&[&["console", "link"], options].concat());
    let none = link(&[]);
    assert_eq!(
        (none.code, &none.json()["error"]["code"]),
        (3, &json!("session_unknown"))
    );

    let console = Console::start(&session.place, &[]);
    let directory = session.place.runtime().join("handover/console");
    let mode =
        |path: &std::path::Path| path.metadata().expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    let sockets: Vec<_> = std::fs::read_dir(&directory)
        .expect("a directory")
        .flatten()
        .collect();
    assert_eq!(sockets.len(), 1);
    assert_eq!(mode(&sockets[0].path()), 0o600);

    let said = link(&["d1", "--for", "2m"]).done();
    assert_eq!(
        (&said["desktop"], &said["session"]),
        (&json!("d1"), &json!(session.id()))
    );
    assert!(said["expiresAt"].is_string() && said["url"].is_string());
    let said = link(&[]).done();
    assert_eq!(
        (&said["desktop"], &said["session"]),
        (&Value::Null, &Value::Null)
    );
    console.enter(said["url"].as_str().expect("a link"));
    assert_eq!(link(&["d9"]).refused(), "desktop_unknown");
    assert_eq!(link(&["d1", "--for", "500ms"]).code, 2);
    assert_eq!(link(&["d1", "--for", "25h"]).code, 2);
    link(&["d1", "--for", "1d"]).done();

    // What nobody has opened has a bound.
    let mut refused = None;
    for _ in 0..70 {
        let outcome = link(&["d1"]);
        if outcome.code != 0 {
            refused = Some(outcome.refused());
            break;
        }
    }
    assert_eq!(refused.as_deref(), Some("queue_full"));

    // What a killed console left is in nobody's way.
    console.running.signal(Signal::KILL);
    console.running.finish(SHORT);
    assert_eq!(link(&[]).code, 3);
    let console = Console::start(&session.place, &[]);
    let sockets = std::fs::read_dir(&directory).expect("a directory").count();
    assert_eq!(sockets, 1);
    assert!(
        link(&[]).done()["url"]
            .as_str()
            .is_some_and(|url| url.starts_with(&console.origin()))
    );
}

#[test]
fn the_browser_is_told_in_private() {
    let mut place = Place::new();
    let programs = place.path().join("bin");
    std::fs::create_dir(&programs).expect("a directory");
    let opener = programs.join("xdg-open");
    let told = place.path().join("told");
    let script = format!(
        "#!/bin/sh\necho \"$#:$1\" >{0}.new; mv {0}.new {0}\n",
        told.display()
    );
    std::fs::write(&opener, script).expect("written");
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).expect("mode");
    let path = std::env::var("PATH").unwrap_or_default();
    place.set("PATH", format!("{}:{path}", programs.display()));
    let console = Console::start(&place, &["--open"]);
    let said = eventually("the browser is opened", SHORT, || {
        std::fs::read_to_string(&told).ok()
    });
    let page = said.trim().strip_prefix("1:").expect("one word").to_owned();
    let page = std::path::PathBuf::from(page);
    assert_eq!(
        page.metadata().expect("a page").permissions().mode() & 0o777,
        0o600
    );
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(
        html.contains(&format!("0; url={}\"", console.url())),
        "{html}"
    );
    console.running.signal(Signal::TERM);
    console.running.finish(SHORT);
    assert!(!page.exists());
}

#[test]
fn a_link_to_one_desktop_opens_nothing_else() {
    let session = Session::up();
    let id = session.id();
    session.cli(&["desktop", "new"]).done();
    session.cli(&["up", "--new", "--name", "other"]).done();
    let console = Console::start(&session.place, &[]);
    let said = session
        .cli(&["console", "link", "d1", "--session", &id])
        .done();
    let url = said["url"].as_str().expect("a link");
    let reply = console.get(url.strip_prefix(&console.origin()).expect("ours"), None);
    let cookie = reply.field("set-cookie").expect("a cookie");
    assert!(cookie.contains("Max-Age="), "{cookie}");
    let cookie = cookie.split(';').next().expect("a value").to_owned();

    let mut phone = Tab::connect(&console, &cookie);
    let told = phone.news("sessions");
    assert_eq!(told["scope"]["kind"], "desktop");
    assert_eq!(told["scope"]["session"], id);
    assert_eq!(told["scope"]["desktop"], "d1");
    assert_eq!(told["scope"]["expiresAt"], said["expiresAt"]);
    let sessions = told["sessions"].as_array().expect("a list");
    assert_eq!(sessions.len(), 1);
    assert_eq!(
        sessions[0]["desktops"],
        json!([{"id": "d1", "control": "agent"}])
    );
    assert_eq!(sessions[0]["agents"], json!([]));
    let place = session.place.path().to_string_lossy().into_owned();
    assert!(!told.to_string().contains(&place), "{told}");

    // Of every method there is, those that are about one desktop; and of desktops, this one.
    let open = [
        "list",
        "subscribe",
        "journal",
        "control.acquire",
        "control.renew",
        "control.reclaim",
        "control.return",
        "control.status",
        "control.revoke",
        "control.pause",
        "control.resume",
        "control.request",
        "control.give",
        "control.refuse",
        "control.secret",
        "desktop.screenshot",
        "view.open",
    ];
    for method in Method::ALL {
        let name = method.name();
        if open.contains(&name) {
            let elsewhere = phone.refused("zzzzzzzz", name, json!({}));
            assert_eq!(elsewhere, "session_unknown", "{name}");
            let lease = json!({"desktop": "d1", "leaseId": "l-0", "token": "t"});
            assert_eq!(phone.refused(&id, name, lease), "lease_stale", "{name}");
        } else {
            assert_eq!(
                phone.refused(&id, name, json!({"desktop": "d1"})),
                "method_unknown",
                "{name}"
            );
        }
        let names_desktop = open.contains(&name)
            && !["list", "subscribe", "journal"].contains(&name)
            && !["renew", "reclaim", "give", "refuse"]
                .iter()
                .any(|end| name.ends_with(end));
        if names_desktop {
            assert_eq!(
                phone.refused(&id, name, json!({"desktop": "d2"})),
                "caller_refused",
                "{name}"
            );
        }
    }
    assert_eq!(session.status()["control"], "agent");

    // It does what it is for.
    let list = phone.done(&id, "list", json!({}));
    assert_eq!(list["desktops"].as_array().map(Vec::len), Some(1));
    phone.done(&id, "subscribe", json!({}));
    let view = phone.done(&id, "view.open", json!({}));
    let granted = phone.done(&id, "control.acquire", json!({"viewer": view["viewer"]}));
    assert_eq!(session.status()["control"], "human");
    let proof = json!({"leaseId": granted["leaseId"], "token": granted["token"]});
    phone.done(&id, "control.renew", proof.clone());
    phone.done(&id, "control.return", proof);
    session.becomes("agent", SHORT);

    // Of what happens elsewhere it hears nothing, now or later.
    let mut wire = session.wire();
    for desktop in ["d2", "d1"] {
        wire.done("control.pause", json!({"desktop": desktop}));
    }
    let heard = phone.hear("its own desktop was paused", |said| {
        said["params"]["kind"] == "paused"
    });
    assert_eq!(heard["params"]["desktop"], "d1");
    let page = phone.done(&id, "journal", json!({"limit": 10_000}));
    let events = page["events"].as_array().expect("a list");
    assert!(!events.is_empty() && events.iter().all(|event| event["desktop"] == "d1"));

    for path in [
        format!("/api/report/{id}"),
        format!("/api/picture/{id}/1.png"),
    ] {
        assert_eq!(console.get(&path, Some(&cookie)).status, 403, "{path}");
    }
    assert_eq!(console.get("/", Some(&cookie)).status, 200);
}

/// A certificate is taken whatever it says, and remembered.
#[derive(Debug)]
struct Anything(Arc<CryptoProvider>);

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Asks for `path` by TLS; the certificate, and the head of the answer.
fn ask(
    port: &str,
    trusted: Option<&CertificateDer<'static>>,
    request: &str,
) -> Result<(Vec<u8>, String), String> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions");
    let config = match trusted {
        Some(certificate) => {
            let mut roots = RootCertStore::empty();
            roots.add(certificate.clone()).expect("a certificate");
            config.with_root_certificates(roots).with_no_client_auth()
        }
        None => config
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anything(provider)))
            .with_no_client_auth(),
    };
    let name = ServerName::try_from("desk.example").expect("a name");
    let mut tls =
        ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())?;
    let mut tcp = TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
    tcp.set_read_timeout(Some(SHORT)).expect("a timeout");
    let mut stream = Stream::new(&mut tls, &mut tcp);
    stream
        .write_all(request.as_bytes())
        .map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    let mut byte = [0; 1];
    // To the end of the head, or of the connection, which the console ends without a word of TLS.
    while !answer.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        answer.push(byte[0]);
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let certificate = tls
        .peer_certificates()
        .and_then(|chain| chain.first())
        .expect("a certificate");
    Ok((certificate.to_vec(), answer))
}

#[test]
fn other_machines_speak_tls_or_nothing() {
    let place = Place::new();
    let options = ["--listen", "0.0.0.0", "--host", "desk.example"];
    let console = Console::start(&place, &options);
    let port = console
        .address()
        .rsplit_once(':')
        .expect("a port")
        .1
        .to_owned();
    let base = format!("https://desk.example:{port}");
    assert!(
        console.url().starts_with(&format!("{base}/open/")),
        "{}",
        console.url()
    );
    // Nothing is said without TLS, and nothing let in.
    let path = console.url()[base.len()..].to_owned();
    let head = |path: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: desk.example:{port}\r\nConnection: close\r\n\r\n")
    };
    let mut plain = TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
    plain.set_read_timeout(Some(SHORT)).expect("a timeout");
    plain.write_all(head(&path).as_bytes()).expect("sent");
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said);
    assert!(!said.windows(4).any(|bytes| bytes == b"HTTP"), "{said:?}");

    let (certificate, answer) = ask(&port, None, &head(&path)).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let cookie = answer
        .lines()
        .find(|line| line.starts_with("set-cookie:"))
        .expect("a cookie");
    assert!(cookie.contains("; Secure"), "{cookie}");
    // Whoever knows the certificate knows the machine: it is valid for that name, and no other.
    let certificate = CertificateDer::from(certificate);
    let (_, answer) = ask(&port, Some(&certificate), &head("/")).expect("a name that it is for");
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let value = cookie
        .trim_start_matches("set-cookie:")
        .split(';')
        .next()
        .expect("a value");
    let socket = format!(
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nCookie:{value}\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: {base}\r\n"
    );
    let upgrade = head("/api/live").replace("Connection: close\r\n", "Connection: Upgrade\r\n");
    let upgrade = upgrade.replace("\r\n\r\n", &format!("\r\n{socket}\r\n"));
    let (_, answer) = ask(&port, None, &upgrade).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    let plain_origin = head("/").replace("\r\n\r\n", "\r\nOrigin: http://desk.example\r\n\r\n");
    let (_, answer) = ask(&port, None, &plain_origin).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");

    let stored = place.state().join("handover/console/certificate.json");
    assert_eq!(
        stored.metadata().expect("stored").permissions().mode() & 0o777,
        0o600
    );
    let fingerprint = console.said["certificateSha256"].clone();
    assert!(fingerprint.is_string());
    drop(console);
    // The next one is known by the same.
    let console = Console::start(&place, &options);
    assert_eq!(console.said["certificateSha256"], fingerprint);
    // Names of the configuration count as well.
    let directory = place.path().join(".config/handover");
    std::fs::create_dir_all(&directory).expect("a directory");
    let named = "[console]\nhosts = [\"desk.example\"]\n";
    std::fs::write(directory.join("config.toml"), named).expect("a configuration");
    let named = Console::start(&place, &["--listen", "0.0.0.0"]);
    assert_eq!(named.said["certificateSha256"], fingerprint);
    std::fs::remove_file(directory.join("config.toml")).expect("removed");
    let other = Console::start(&place, &["--listen", "0.0.0.0", "--host", "other.example"]);
    let port = other
        .address()
        .rsplit_once(':')
        .expect("a port")
        .1
        .to_owned();
    assert!(ask(&port, Some(&certificate), &head("/")).is_err());

    // On this machine alone, none is needed.
    let local = Console::start(&place, &[]);
    assert!(local.url().starts_with("http://127.0.0.1:"));
    assert!(local.said["certificateSha256"].is_null());
}

#[test]
fn a_certificate_of_ones_own() {
    let place = Place::new();
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(["desk.example".to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate");
    let pem = |kind: &str, der: &[u8]| {
        use base64::Engine;
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        let lines: Vec<_> = text
            .as_bytes()
            .chunks(64)
            .map(String::from_utf8_lossy)
            .collect();
        format!(
            "-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n",
            lines.join("\n")
        )
    };
    let (chain, secret) = (place.path().join("chain.pem"), place.path().join("key.pem"));
    std::fs::write(&chain, pem("CERTIFICATE", certificate.der())).expect("written");
    std::fs::write(&secret, pem("PRIVATE KEY", &key.serialize_der())).expect("written");
    let (chain, secret) = (
        chain.to_str().expect("a path"),
        secret.to_str().expect("a path"),
    );
    let options = [
        "--host",
        "desk.example",
        "--tls-cert",
        chain,
        "--tls-key",
        secret,
    ];
    let console = Console::start(&place, &options);
    let port = console
        .address()
        .rsplit_once(':')
        .expect("a port")
        .1
        .to_owned();
    let head = format!("GET / HTTP/1.1\r\nHost: desk.example:{port}\r\nConnection: close\r\n\r\n");
    let (_, answer) = ask(&port, Some(certificate.der()), &head).expect("its own certificate");
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");

    let run = |options: &[&str]| {
        let mut command = place.handover();
        Running::start(command.args(["console", "--json"]).args(options)).finish(LONG)
    };
    assert_eq!(run(&["--tls-cert", chain]).code, 2);
    assert_eq!(
        run(&["--tls-cert", secret, "--tls-key", secret]).refused(),
        "bad_params"
    );
    assert_eq!(
        run(&["--tls-cert", "/nonexistent", "--tls-key", secret]).refused(),
        "bad_params"
    );
    assert_eq!(run(&["--listen", "desk.example"]).code, 2);
    assert_eq!(run(&["--host", "desk.example:80"]).code, 2);
    let taken = console
        .address()
        .rsplit_once(':')
        .expect("a port")
        .1
        .to_owned();
    assert_eq!(run(&["--port", &taken]).refused(), "bad_params");
}
