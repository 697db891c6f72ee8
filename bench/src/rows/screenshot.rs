//! A picture of a desktop that shows something, as PNG over the socket.

use std::time::{Duration, Instant};

use handover_protocol::Method;
use serde_json::json;

use crate::{
    Outcome,
    figures::{Row, Samples},
    screen::Screen,
    session::Session,
};

/// Both sizes, with the picture in the answer.
pub fn measure() -> Outcome<Vec<Row>> {
    Ok(vec![
        Row::times(
            "screenshot 1280x800, PNG over the socket",
            of_size("1280x800")?,
        )
        .below(Duration::from_millis(20)),
        Row::times(
            "screenshot 1920x1080, PNG over the socket",
            of_size("1920x1080")?,
        ),
    ])
}

fn of_size(size: &str) -> Outcome<Samples> {
    let session = Session::up(size)?;
    let screen = Screen::cover(&session.display()?)?;
    screen.paint()?;
    let _seen = screen.watch()?;
    let wire = session.wire()?;
    Samples::take(100, || {
        let started = Instant::now();
        let params = json!({"desktop": "d1", "inline": true});
        let picture = wire.call(Method::DesktopScreenshot, params)?;
        let took = started.elapsed();
        if picture["png"].as_str().is_none_or(str::is_empty) {
            return Err("a screenshot without its picture".into());
        }
        Ok(took)
    })
}
