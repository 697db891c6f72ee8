use std::time::{Duration, Instant};

use handover_host::display::{Additions, X11Error};
use rustix::process::Signal;

use crate::xvnc::{Xvnc, until, write_authority};

#[tokio::test]
async fn windows_are_listed_with_and_without_a_window_manager() {
    let mut xvnc = Xvnc::start("800x600");
    let x11 = xvnc.x11();
    assert_eq!(x11.windows().await.expect("listed"), []);
    let pid = xvnc.run("xterm", &["-T", "première", "-geometry", "40x10+60+70"]);
    let window = until("the xterm's window", async || {
        let mut windows = x11.windows().await.expect("listed");
        assert!(windows.len() <= 1);
        windows.pop()
    })
    .await;
    assert_eq!(window.title, "première");
    assert_eq!(window.pid, Some(pid));
    // Within its border of one pixel.
    assert_eq!((window.x, window.y), (61, 71));
    assert!(window.width > 100 && window.height > 50);

    xvnc.run("openbox", &[]);
    until("the window manager", async || {
        let output = xvnc
            .command("xprop")
            .args(["-root", "_NET_CLIENT_LIST"])
            .stdout(std::process::Stdio::piped())
            .output()
            .expect("xprop is installed");
        output.stdout.windows(2).any(|at| at == b"0x").then_some(())
    })
    .await;
    let second = xvnc.run("xterm", &["-T", "second"]);
    let (first, second) = until("both windows, managed, one with the focus", async || {
        let windows = x11.windows().await.expect("listed");
        let of = |pid| {
            windows
                .iter()
                .find(|window| window.pid == Some(pid))
                .cloned()
        };
        let both = (of(pid)?, of(second)?);
        both.1.focused.then_some(both)
    })
    .await;
    assert!(!first.focused);
    assert_eq!(first.id, window.id);
    assert_eq!(second.title, "second");

    x11.focus(first.id).await.expect("asked");
    until("the focus on the first", async || {
        let windows = x11.windows().await.expect("listed");
        windows
            .iter()
            .any(|window| window.id == first.id && window.focused)
            .then_some(())
    })
    .await;
    assert!(matches!(
        x11.focus(0x7fff_fff0).await,
        Err(X11Error::Refused(_))
    ));
}

#[tokio::test]
async fn clients_are_listed_with_their_processes() {
    let mut xvnc = Xvnc::start("320x200");
    let x11 = xvnc.x11();
    assert_eq!(x11.clients().await.expect("listed"), []);
    let pid = xvnc.run("xterm", &[]);
    until("the xterm", async || {
        let clients = x11.clients().await.expect("listed");
        clients
            .iter()
            .any(|client| client.pid == Some(pid))
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn selections_and_cut_buffers_are_emptied() {
    let mut xvnc = Xvnc::start("320x200");
    let x11 = xvnc.x11();
    let file = xvnc.directory.path().join("text");
    std::fs::write(&file, "secret").expect("written");
    let file = file.to_str().expect("a plain path").to_owned();
    for selection in ["primary", "clipboard"] {
        xvnc.run("xclip", &["-quiet", "-selection", selection, "-i", &file]);
    }
    let stored = xvnc
        .command("xprop")
        .args([
            "-root",
            "-f",
            "CUT_BUFFER0",
            "8s",
            "-set",
            "CUT_BUFFER0",
            "secret",
        ])
        .status()
        .expect("xprop is installed");
    assert!(stored.success());
    let read = |selection: &str| {
        let output = xvnc
            .command("xclip")
            .args(["-o", "-selection", selection])
            .stdout(std::process::Stdio::piped())
            .output()
            .expect("xclip is installed");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for selection in ["primary", "clipboard"] {
        until(selection, async || {
            (read(selection) == "secret").then_some(())
        })
        .await;
    }
    x11.clear_clipboard().await.expect("cleared");
    for selection in ["primary", "clipboard", "buffer-cut"] {
        assert_eq!(read(selection), "", "{selection}");
    }
}

#[tokio::test]
async fn the_pointer_is_found() {
    let xvnc = Xvnc::start("320x200");
    let pointer = xvnc.x11().pointer().await.expect("found");
    assert!(pointer.x < 320 && pointer.y < 200);
    assert_eq!(pointer.buttons, 0);
}

#[tokio::test]
async fn the_keyboard_mapping_decides_what_can_be_typed() {
    let xvnc = Xvnc::start("320x200");
    let x11 = xvnc.x11();
    assert_eq!(
        x11.untypable("Hello, World!\t\n", Additions::Refused)
            .await
            .expect("read"),
        None
    );
    let missing = x11
        .untypable("aé漢", Additions::Refused)
        .await
        .expect("read")
        .expect("not on this keyboard");
    assert_eq!((missing.index, missing.character), (1, 'é'));
    let more = "éàü漢字漢字";
    assert_eq!(x11.untypable(more, Additions::Allowed).await, Ok(None));
    let many: String = ('а'..='я').collect();
    let missing = x11
        .untypable(&many, Additions::Allowed)
        .await
        .expect("read")
        .expect("too many");
    assert_eq!(missing.index, 19);
    let use_layout = |layout: &str| {
        let set = xvnc
            .command("setxkbmap")
            .arg(layout)
            .status()
            .expect("setxkbmap is installed");
        assert!(set.success());
    };
    use_layout("fr");
    assert_eq!(
        x11.untypable("é@~", Additions::Refused)
            .await
            .expect("read"),
        None
    );
    // The German keyboard has the circumflex as an accent only.
    use_layout("de");
    let missing = x11
        .untypable("ß@^", Additions::Refused)
        .await
        .expect("read")
        .expect("an accent");
    assert_eq!(missing.character, '^');
    // The layout in use counts, not another that is set up.
    use_layout("ru,us");
    let missing = x11
        .untypable("1a", Additions::Refused)
        .await
        .expect("read")
        .expect("no Latin");
    assert_eq!(missing.character, 'a');
    use_layout("us,ru");
    assert_eq!(
        x11.untypable("1a", Additions::Refused).await.expect("read"),
        None
    );
}

#[tokio::test]
async fn untrusted_clients_see_little() {
    let xvnc = Xvnc::start("320x200");
    let cookie = xvnc.x11().untrusted_cookie(0).await.expect("made").cookie;
    let path = xvnc.directory.path().join("untrusted");
    write_authority(&path, &cookie);
    let list = |authority: &std::path::Path| {
        let output = xvnc
            .command("xdpyinfo")
            .env("XAUTHORITY", authority)
            .stdout(std::process::Stdio::piped())
            .output()
            .expect("xdpyinfo is installed");
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(list(&xvnc.directory.path().join("auth")).contains("XInputExtension"));
    assert!(!list(&path).contains("XInputExtension"));
}

#[tokio::test]
async fn a_wrong_cookie_is_refused() {
    let xvnc = Xvnc::start("320x200");
    let x11 = handover_host::display::X11::spawn(xvnc.display, [7; 16]).expect("a thread");
    assert!(matches!(x11.pointer().await, Err(X11Error::Connect(_))));
}

#[tokio::test]
async fn a_stopped_display_never_holds_a_caller() {
    let xvnc = Xvnc::start("320x200");
    let x11 = xvnc.x11();
    x11.pointer().await.expect("found");
    xvnc.signal(Signal::STOP);
    let before = Instant::now();
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let x11 = x11.clone();
            tokio::spawn(async move { x11.pointer().await })
        })
        .collect();
    for call in calls {
        let outcome = call.await.expect("no panic");
        assert!(
            matches!(outcome, Err(X11Error::Timeout | X11Error::Busy)),
            "{outcome:?}"
        );
    }
    assert!(before.elapsed() < Duration::from_secs(20));
    xvnc.signal(Signal::CONT);
    until("an answer", async || x11.pointer().await.ok()).await;
}
