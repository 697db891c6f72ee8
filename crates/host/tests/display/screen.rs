use std::time::{Duration, Instant};

use handover_host::display::{CaptureError, Screenshot};
use rustix::process::Signal;

use crate::xvnc::{Xvnc, until};

const TEAL: [u8; 3] = [0, 96, 112];

fn pixels(picture: &Screenshot) -> Vec<u8> {
    let decoder = png::Decoder::new(std::io::Cursor::new(&picture.png[..]));
    let mut reader = decoder.read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("small")];
    reader.next_frame(&mut pixels).expect("whole");
    pixels
}

#[tokio::test]
async fn a_picture_shows_what_is_on_the_screen() {
    let xvnc = Xvnc::start("320x200");
    xvnc.x11().set_background(TEAL).await.expect("set");
    let picture = xvnc.screen().capture().await.expect("a picture");
    assert_eq!((picture.width, picture.height), (320, 200));
    let pixels = pixels(&picture);
    assert_eq!(pixels.len(), 320 * 200 * 3);
    // The pointer is drawn by viewers, not into the frame.
    assert!(pixels.as_chunks::<3>().0.iter().all(|pixel| *pixel == TEAL));
}

#[tokio::test]
async fn a_black_screen_is_told_from_a_picture() {
    let xvnc = Xvnc::start("320x200");
    let screen = xvnc.screen();
    assert!(matches!(
        screen.capture().await,
        Err(CaptureError::AllBlack { size: (320, 200) })
    ));
    assert_eq!(screen.size().await.expect("known"), (320, 200));
    xvnc.x11().set_background(TEAL).await.expect("set");
    screen.capture().await.expect("a picture");
}

#[tokio::test]
async fn those_who_ask_together_share_a_connection() {
    let xvnc = Xvnc::start("320x200");
    xvnc.x11().set_background(TEAL).await.expect("set");
    let upstream = xvnc.upstream();
    let screen = handover_host::display::Screen::spawn(
        upstream.clone(),
        handover_rfb::handshake::Credentials::Password("view".into()),
        handover_host::display::SizeChanges::Follow,
    );
    let asking: Vec<_> = (0..200)
        .map(|_| {
            let screen = screen.clone();
            tokio::spawn(async move { screen.capture().await })
        })
        .collect();
    for answer in asking {
        answer.await.expect("no panic").expect("a picture");
    }
    assert_eq!(upstream.connections_made(), 1);
    assert_eq!(xvnc.log().matches("Connections: accepted").count(), 1);
}

#[tokio::test]
async fn a_change_of_size_is_followed() {
    let xvnc = Xvnc::start("640x480");
    xvnc.x11().set_background(TEAL).await.expect("set");
    let screen = xvnc.screen();
    screen.capture().await.expect("a picture");
    assert_eq!(screen.known_size(), Some((640, 480)));
    let resized = xvnc
        .command("xrandr")
        .args(["--output", "VNC-0", "--mode", "800x600"])
        .status()
        .expect("xrandr is installed");
    assert!(resized.success());
    // Nobody takes a picture meanwhile.
    until("the new size", async || {
        (screen.known_size() == Some((800, 600))).then_some(())
    })
    .await;
    let picture = screen.capture().await.expect("a picture");
    assert_eq!((picture.width, picture.height), (800, 600));
}

#[tokio::test]
async fn a_picture_right_after_a_change_of_size_is_whole() {
    let xvnc = Xvnc::start("640x480");
    xvnc.x11().set_background(TEAL).await.expect("set");
    let screen = xvnc.screen();
    for size in [(800, 600), (640, 480), (1024, 768)] {
        let mode = format!("{}x{}", size.0, size.1);
        let mut resize = xvnc
            .command("xrandr")
            .args(["--output", "VNC-0", "--mode", &mode])
            .spawn()
            .expect("xrandr is installed");
        until(&mode, async || {
            let picture = screen.capture().await.expect("a picture");
            let whole = usize::from(picture.width) * usize::from(picture.height) * 3;
            assert_eq!(pixels(&picture).len(), whole);
            ((picture.width, picture.height) == size).then_some(())
        })
        .await;
        assert!(resize.wait().expect("it ran").success());
    }
}

#[tokio::test]
async fn a_stopped_display_is_an_error_in_time_and_no_lasting_one() {
    let xvnc = Xvnc::start("320x200");
    xvnc.x11().set_background(TEAL).await.expect("set");
    let screen = xvnc.screen();
    screen.capture().await.expect("a picture");
    xvnc.signal(Signal::STOP);
    let before = Instant::now();
    assert!(matches!(screen.capture().await, Err(CaptureError::Timeout)));
    assert!(before.elapsed() < Duration::from_secs(20));
    xvnc.signal(Signal::CONT);
    until("a picture", async || screen.capture().await.ok()).await;
}

#[tokio::test]
async fn a_display_that_is_gone_is_an_error() {
    let xvnc = Xvnc::start("320x200");
    let screen = xvnc.screen();
    let _ = screen.capture().await;
    drop(xvnc);
    assert!(matches!(
        screen.capture().await,
        Err(CaptureError::Connect(_) | CaptureError::Closed(_))
    ));
}
