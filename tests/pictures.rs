//! P3 and the pictures themselves: a screenshot is what is on the screen, and an all-black one is no success.

use serde_json::json;
use sha2::{Digest, Sha256};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt, CreateGCAux, CreateWindowAux, Rectangle};
use x11rb::rust_connection::RustConnection;

use crate::support::{Picture, Recorder, SHORT, Session, cover, eventually};

#[test]
fn a_picture_shows_what_is_on_the_screen() {
    let session = Session::up();
    let mut agent = session.wire();
    let before = agent.done("desktop.screenshot", json!({}));
    // The recorder's window covers the screen in one colour.
    let _window = Recorder::window(&session.display());
    let (after, shown) = eventually("the window in a picture", SHORT, || {
        let after = agent.done("desktop.screenshot", json!({}));
        let file = std::fs::read(after["path"].as_str().expect("a path")).expect("the picture");
        let shown = Picture::read(&file);
        (shown.pixel(700, 500) == [0x33, 0x66, 0x99]).then_some((after, shown))
    });
    assert_eq!(shown.size, (800, 600));
    assert_ne!(before["sha256"], after["sha256"]);
    let bytes = std::fs::read(after["path"].as_str().expect("a path")).expect("the picture");
    let sum: String = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(after["sha256"], sum);
}

/// A new desktop is not black, so that black can be told from nothing.
#[test]
fn an_all_black_picture_is_reported() {
    let session = Session::up();
    let mut agent = session.wire();
    agent.done("desktop.screenshot", json!({}));
    let x = session.display().connect();
    cover_in_black(&x);
    let refused = eventually("black is noticed", SHORT, || {
        agent.call("desktop.screenshot", json!({})).err()
    });
    assert_eq!(refused.code, "display_unavailable");
    assert!(refused.message.contains("black"), "{refused:?}");
    drop(x);
    eventually("pictures again", SHORT, || {
        agent.call("desktop.screenshot", json!({})).ok()
    });
}

fn cover_in_black(x: &RustConnection) {
    let cursor = invisible(x, x.setup().roots[0].root);
    cover(x, CreateWindowAux::new().background_pixel(0).cursor(cursor));
}

/// A cursor without a pixel, since the server draws the cursor into its pictures.
fn invisible(x: &RustConnection, root: u32) -> u32 {
    let (pixmap, cursor) = (
        x.generate_id().expect("an id"),
        x.generate_id().expect("an id"),
    );
    x.create_pixmap(1, pixmap, root, 1, 1)
        .expect("sent")
        .check()
        .expect("a pixmap");
    let gc = x.generate_id().expect("an id");
    x.create_gc(gc, pixmap, &CreateGCAux::new().foreground(0))
        .expect("sent");
    let all = Rectangle {
        x: 0,
        y: 0,
        width: 1,
        height: 1,
    };
    x.poly_fill_rectangle(pixmap, gc, &[all]).expect("sent");
    x.create_cursor(cursor, pixmap, pixmap, 0, 0, 0, 0, 0, 0, 0, 0)
        .expect("sent")
        .check()
        .expect("a cursor");
    cursor
}
