//! From nothing to pixels.

use std::time::{Duration, Instant};

use crate::{
    Outcome,
    figures::{Row, Samples},
    rfb::Viewer,
    session::{Session, viewer},
};

/// `handover up --desktop` until a viewer has a whole frame, and a viewer alone.
pub fn measure() -> Outcome<Vec<Row>> {
    let mut frames = Samples::default();
    let starts = Samples::take(10, || {
        let started = Instant::now();
        let session = Session::up("1280x800")?;
        let wire = session.wire()?;
        let opened = Instant::now();
        let (socket, _) = viewer(&wire, "d1")?;
        Viewer::connect(&socket)?.frame()?;
        frames.push(opened.elapsed());
        Ok::<_, crate::Failure>(started.elapsed())
    })?;
    Ok(vec![
        Row::times("`handover up --desktop` to the first frame", starts)
            .below(Duration::from_secs(1)),
        Row::times("`view.open` to the first frame", frames).below(Duration::from_secs(1)),
    ])
}
