//! The web console lets in whom it is told to let in, once a link, and hears no page but its own.

use crate::support::{Console, Place, Reply, Session};

/// Every kind of address that the console answers.
const PATHS: [&str; 9] = [
    "/",
    "/index.html",
    "/assets/none.js",
    "/nothing",
    "/api",
    "/api/live",
    "/api/view/k3j2h1x9/v1",
    "/api/picture/k3j2h1x9/1.png",
    "/api/report/k3j2h1x9",
];

/// What must be said with every answer.
fn check_headers(reply: &Reply) {
    let policy = reply.field("content-security-policy").expect("a policy");
    let loose = ["unsafe", "http:", "https:", "*"];
    assert!(!loose.iter().any(|word| policy.contains(word)), "{policy}");
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!(reply.field("x-content-type-options"), Some("nosniff"));
    assert_eq!(reply.field("referrer-policy"), Some("no-referrer"));
    assert_eq!(
        reply.field("cross-origin-opener-policy"),
        Some("same-origin")
    );
    assert_eq!(
        reply.field("cross-origin-resource-policy"),
        Some("same-origin")
    );
    assert!(reply.field("cache-control").is_some());
    assert!(
        reply
            .fields
            .iter()
            .all(|(name, _)| !name.starts_with("access-control"))
    );
}

/// The path of a link.
fn path(console: &Console, url: &str) -> String {
    url.strip_prefix(&console.origin())
        .expect("a link")
        .to_owned()
}

#[test]
fn a_link_lets_one_browser_in_once() {
    let place = Place::new();
    let console = Console::start(&place, &[]);
    let link = path(&console, &console.url());
    let address = console.address();
    let host = ("Host", address.as_str());

    // Nobody who only looks ahead uses it up.
    for ahead in ["Sec-Purpose", "Purpose", "X-Moz"] {
        let reply = console.request("GET", &link, &[host, (ahead, "prefetch")]);
        assert_eq!(
            (reply.status, reply.field("set-cookie")),
            (403, None),
            "{ahead}"
        );
    }
    // Nor what a page of another site shows or asks for by itself.
    for mode in ["no-cors", "cors", "same-origin", "websocket"] {
        let fields = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", mode)];
        let reply = console.request("GET", &link, &[&[host][..], &fields].concat());
        let answer = (reply.status, reply.field("set-cookie"));
        assert_eq!(answer, (403, None), "{mode}");
    }
    let reply = console.request("HEAD", &link, &[host]);
    assert_eq!((reply.status, reply.field("set-cookie")), (403, None));
    assert!(reply.body.is_empty());
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let origin = console.origin();
        let reply = console.request(method, &link, &[host, ("Origin", &origin)]);
        assert_eq!(
            (reply.status, reply.field("set-cookie")),
            (405, None),
            "{method}"
        );
    }
    for other in [
        "/open/",
        "/open/x",
        "/open/00/x",
        &link[..link.len() - 1],
        &format!("{link}0"),
    ] {
        let reply = console.get(other, None);
        assert!(matches!(reply.status, 403 | 404), "{other}: {reply:?}");
        assert_eq!(reply.field("set-cookie"), None);
        check_headers(&reply);
    }

    let reply = console.get(&link, None);
    assert_eq!(reply.status, 200);
    check_headers(&reply);
    assert_eq!(reply.field("cache-control"), Some("no-store"));
    assert!(!reply.text().contains("<script") && !reply.text().contains("style"));
    let cookie = reply.field("set-cookie").expect("a cookie");
    let port = address.rsplit_once(':').expect("a port").1;
    let mut parts = cookie.split("; ");
    let value = parts.next().expect("a value");
    assert!(value.starts_with(&format!("handover-{port}=")), "{cookie}");
    let mut attributes: Vec<&str> = parts.collect();
    attributes.sort_unstable();
    assert_eq!(attributes, ["HttpOnly", "Path=/", "SameSite=Strict"]);

    assert_eq!(console.get("/", Some(value)).status, 200);
    let reply = console.get(&link, None);
    assert_eq!((reply.status, reply.field("set-cookie")), (403, None));
    assert!(reply.text().contains("handover console link"));
    // Not even for the browser that used it.
    assert_eq!(console.get(&link, Some(value)).status, 403);
    // The secret of the link is not that of the cookie.
    let secret = link.trim_start_matches("/open/");
    let stolen = format!("handover-{port}={secret}");
    assert_eq!(console.get("/", Some(&stolen)).status, 401);
}

#[test]
fn without_a_cookie_there_is_nothing() {
    let session = Session::up();
    let console = Console::start(&session.place, &[]);
    let address = console.address();
    let port = address.rsplit_once(':').expect("a port").1.to_owned();
    let zeros = format!("handover-{port}={}", "0".repeat(64));
    let nothing = [
        None,
        Some(zeros.as_str()),
        Some("handover=1"),
        Some("; ; ="),
    ];
    for path in PATHS {
        for cookie in nothing {
            let reply = console.get(path, cookie);
            assert_eq!(reply.status, 401, "{path} {cookie:?}");
            check_headers(&reply);
            assert!(!reply.text().contains(&session.id()), "{path}");
        }
        let origin = console.origin();
        let reply = console.knock(path, &[("Host", &address), ("Origin", &origin)]);
        assert_eq!(reply.status, 401, "{path}");
    }
    // What is in the cookie of another console counts for nothing here.
    let other = Console::start(&session.place, &[]);
    let theirs = other.enter(&other.url());
    assert_eq!(console.get("/", Some(&theirs)).status, 401);
    let renamed = theirs.replacen(
        other.address().rsplit_once(':').expect("a port").1,
        &port,
        1,
    );
    assert_eq!(console.get("/", Some(&renamed)).status, 401);
}

#[test]
fn other_sites_are_not_heard() {
    let place = Place::new();
    let console = Console::start(&place, &["--host", "desk.example"]);
    let cookie = console.enter(&console.url());
    let address = console.address();
    let port = address.rsplit_once(':').expect("a port").1.to_owned();
    let all = PATHS.iter().copied().chain(["/open/00"]);
    for path in all {
        // Names that an attacker can make mean this machine.
        for host in [
            "evil.com",
            &format!("evil.com:{port}"),
            &format!("localhost.evil.com:{port}"),
            &format!("127.0.0.1.nip.io:{port}"),
            &format!("localhost.:{port}"),
            &format!("user@localhost:{port}"),
            &format!("0.0.0.0:{port}"),
            &format!("10.0.0.1:{port}"),
            "",
        ] {
            let reply = console.request("GET", path, &[("Host", host), ("Cookie", &cookie)]);
            assert!(
                matches!(reply.status, 400 | 421),
                "{path} {host}: {reply:?}"
            );
            let reply = console.knock(
                path,
                &[
                    ("Host", host),
                    ("Origin", &format!("http://{host}")),
                    ("Cookie", &cookie),
                ],
            );
            assert!(
                matches!(reply.status, 400 | 421),
                "{path} {host}: {reply:?}"
            );
        }
        let reply = console.request("GET", path, &[("Cookie", &cookie)]);
        assert!(matches!(reply.status, 400 | 421), "{path}: {reply:?}");
        let twice = [
            ("Host", &*address),
            ("Host", "evil.com"),
            ("Cookie", &*cookie),
        ];
        let reply = console.request("GET", path, &twice);
        assert!(matches!(reply.status, 400 | 421), "{path}: {reply:?}");
        // The first line counts too.
        let absolute = format!("http://evil.com{path}");
        let reply = console.request("GET", &absolute, &[("Host", &address), ("Cookie", &cookie)]);
        assert!(matches!(reply.status, 400 | 421), "{path}: {reply:?}");

        // Pages of other sites, whatever the browser sends along.
        for origin in [
            "null",
            "http://evil.com",
            "http://localhost.evil.com",
            &format!("https://{address}"),
            &format!("http://localhost:{port}"),
            "http://127.0.0.1",
            "http://127.0.0.1:1",
            &format!("http://{address}/"),
            &format!("http://{address}@evil.com"),
            "file://",
        ] {
            let fields = [
                ("Host", &*address),
                ("Origin", origin),
                ("Cookie", &*cookie),
            ];
            let reply = console.request("GET", path, &fields);
            assert_eq!(reply.status, 403, "{path} {origin}");
            check_headers(&reply);
            assert_eq!(
                console.request("POST", path, &fields).status,
                403,
                "{path} {origin}"
            );
            assert_eq!(console.knock(path, &fields).status, 403, "{path} {origin}");
        }
        // What is more than reading a page must say where it comes from.
        let silent = [("Host", &*address), ("Cookie", &*cookie)];
        assert_eq!(console.request("POST", path, &silent).status, 403, "{path}");
        assert_eq!(console.knock(path, &silent).status, 403, "{path}");
    }
    // Under every name of its own, and through a tunnel, it is heard.
    for host in [
        "localhost:9999",
        "[::1]:80",
        &format!("127.0.0.1:{port}"),
        "desk.example",
    ] {
        let origin = format!("http://{host}");
        let fields = [("Host", host), ("Origin", &*origin), ("Cookie", &*cookie)];
        assert_eq!(console.request("GET", "/", &fields).status, 200, "{host}");
        assert_eq!(console.knock("/api/live", &fields).status, 101, "{host}");
    }
}

#[test]
fn the_app_is_served_whole() {
    let place = Place::new();
    let console = Console::start(&place, &[]);
    let cookie = console.enter(&console.url());
    let reply = console.get("/", Some(&cookie));
    assert_eq!(reply.status, 200);
    check_headers(&reply);
    assert_eq!(
        reply.field("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(reply.field("cache-control"), Some("no-store"));
    assert!(
        reply.text().to_lowercase().starts_with("<!doctype html>"),
        "{reply:?}"
    );

    let address = console.address();
    let fields = [
        ("Host", &*address),
        ("Cookie", &*cookie),
        ("Accept-Encoding", "gzip, br"),
    ];
    let packed = console.request("GET", "/", &fields);
    assert_eq!(packed.field("content-encoding"), Some("gzip"));
    assert!(packed.body.starts_with(&[0x1f, 0x8b]));
    let head = console.request("HEAD", "/", &fields);
    assert_eq!((head.status, head.body.len()), (200, 0));

    // What the page names is there, and may be kept.
    let page = reply.text();
    let files = page.split('"').filter(|text| text.starts_with("/assets/"));
    for file in files {
        let reply = console.get(file, Some(&cookie));
        assert_eq!(reply.status, 200, "{file}");
        check_headers(&reply);
        assert!(
            reply
                .field("cache-control")
                .is_some_and(|kept| kept.contains("immutable"))
        );
    }
    for other in [
        "/../Cargo.toml",
        "/%2e%2e/Cargo.toml",
        "/assets/../index.html",
        "/assets/",
        "//",
    ] {
        let reply = console.get(other, Some(&cookie));
        assert_eq!(reply.status, 404, "{other}");
        check_headers(&reply);
    }
    let origin = console.origin();
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let fields = [
            ("Host", &*address),
            ("Cookie", &*cookie),
            ("Origin", &*origin),
        ];
        let reply = console.request(method, "/", &fields);
        assert_eq!(reply.status, 405, "{method}");
        check_headers(&reply);
    }
}
