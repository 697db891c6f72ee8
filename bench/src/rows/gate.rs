//! What the gate costs: the same display server by way of the gate and directly, in turns.

use std::time::{Duration, Instant};

use handover_protocol::Method;
use serde_json::{Value, json};

use super::copy::Copier;
use crate::{
    Outcome,
    figures::{Figure, Row, Samples, median},
    place::{eventually, text},
    processor::RunTimes,
    rfb::Viewer,
    screen::{Screen, What, colour},
    server::Server,
    session::{Session, viewer},
};

/// Turns of each way, and how long one is.
const TURNS: usize = 25;
const TURN: Duration = Duration::from_millis(200);

/// Frames over which processor time is counted.
const COSTED: u32 = 200;

/// Where the pixel is that changes at a press.
const PIXEL: (u16, u16) = (32, 32);

/// How long an event may take to arrive.
const LIMIT: Duration = Duration::from_secs(10);

/// Full frames a second, and from a click to the pixel that it changes.
pub fn measure() -> Outcome<Vec<Row>> {
    // Ends after the session, which is connected to it.
    let server = Server::start("1280x800", 1000)?;
    let session = Session::up("800x600")?;
    let wire = session.wire()?;
    let attach = format!("unix:{}", text(&server.socket)?);
    let desktop = wire.call(Method::DesktopNew, json!({"attach": attach}))?;
    let desktop = desktop["id"].as_str().ok_or("a desktop without an id")?;
    let (socket, name) = viewer(&wire, desktop)?;
    let mut gate = Viewer::connect(&socket)?;
    let mut direct = Viewer::connect(&server.socket)?;

    let copier = Copier::start(&server.socket)?;
    let mut copied = Viewer::connect(&copier.socket)?;
    let mut rows = throughput([&mut direct, &mut gate, &mut copied])?;
    let cost = |name, viewer: &mut Viewer, pid| {
        Ok::<_, crate::Failure>(Row::number(name, cost_of_a_frame(viewer, pid)?, "ms"))
    };
    rows.push(cost(
        "  processor time a frame, the host",
        &mut gate,
        session.host()?,
    )?);
    rows.push(cost(
        "  processor time a frame, the bare copy",
        &mut copied,
        copier.pid(),
    )?);
    let params = json!({"desktop": desktop, "viewer": name});
    let lease: Value = wire.call(Method::ControlAcquire, params)?;
    rows.extend(click_to_pixel(&server, &mut direct, &mut gate)?);
    let params = json!({"leaseId": lease["leaseId"], "token": lease["token"]});
    wire.call(Method::ControlReturn, params)?;
    Ok(rows)
}

/// Full frames a second by each way, in turns that are short, so that whatever else the machine does
/// meets all of them; the shares are those of turns that followed each other.
fn throughput(mut ways: [&mut Viewer; 3]) -> Outcome<Vec<Row>> {
    let mut turns = [const { Vec::new() }; 3];
    for _ in 0..TURNS {
        for (viewer, rates) in ways.iter_mut().zip(&mut turns) {
            rates.push(frames_a_second(viewer)?);
        }
    }
    let share = |way: &[f64]| median(way.iter().zip(&turns[0]).map(|(a, b)| a / b).collect());
    let (gate, copy) = (share(&turns[1]), share(&turns[2]));
    let [direct, gated, copied] = turns.map(median);
    Ok(vec![
        Row::number("full frames of 1280x800, directly", direct, "/s"),
        Row::number("full frames of 1280x800, through the gate", gated, "/s"),
        Row::number("full frames of 1280x800, through a bare copy", copied, "/s"),
        Row::number("  the gate's share of direct", gate, "").at_least(0.55),
        Row::number("  the bare copy's share of direct", copy, ""),
    ])
}

fn frames_a_second(viewer: &mut Viewer) -> Outcome<f64> {
    let (started, mut frames) = (Instant::now(), 0);
    while started.elapsed() < TURN {
        viewer.frame()?;
        frames += 1;
    }
    Ok(f64::from(frames) / started.elapsed().as_secs_f64())
}

/// Milliseconds that a process between server and viewer runs for one full frame, which a busy machine
/// changes little.
fn cost_of_a_frame(viewer: &mut Viewer, between: u64) -> Outcome<f64> {
    let before = RunTimes::of(between)?;
    for _ in 0..COSTED {
        viewer.frame()?;
    }
    Ok(1000.0 * before.since()?.as_secs_f64() / f64::from(COSTED))
}

fn click_to_pixel(server: &Server, direct: &mut Viewer, gate: &mut Viewer) -> Outcome<Vec<Row>> {
    let seen = Screen::cover(&server.display())?.watch()?;
    let mut presses = 0;
    let mut click = |viewer: &mut Viewer| {
        presses += 1;
        // What is shown now is asked for first, so that only the click's change is left.
        viewer.frame()?;
        viewer.ask(true)?;
        let started = Instant::now();
        viewer.pointer(1, 300, 300)?;
        viewer.until(PIXEL, colour(presses))?;
        let took = started.elapsed();
        viewer.pointer(0, 300, 300)?;
        eventually("the release", LIMIT, || {
            seen.try_iter().find(|event| event.what == What::Release)
        })?;
        Ok::<_, crate::Failure>(took)
    };
    let mut through = Samples::default();
    let directly = Samples::take(300, || {
        through.push(click(gate)?);
        click(direct)
    })?;
    let added = through.median().as_secs_f64() - directly.median().as_secs_f64();
    let added = Row {
        name: "  added by the gate, median".into(),
        figure: Figure::Number(1000.0 * added, "ms"),
        target: None,
    };
    Ok(vec![
        Row::times("click to pixel at FrameRate 1000, directly", directly),
        Row::times(
            "click to pixel at FrameRate 1000, through the gate",
            through,
        ),
        added.less_than(1.0),
    ])
}
