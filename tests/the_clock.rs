//! L13: steps of the wall clock, in the host or in the person's own program, change nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use handover_protocol::Timestamp;
use serde_json::json;

use crate::support::{LONG, Place, Running, Session, Signal, holds_for, stop, wall_ms};

const DAY: i64 = 24 * 60 * 60;

/// A wall clock of this place's own: as many seconds ahead as the file says.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    long result = syscall(SYS_clock_gettime, clock, time);
    const char *path = getenv("CLOCK_STEP");
    if (result != 0 || clock != CLOCK_REALTIME || path == NULL) return result;
    FILE *file = fopen(path, "r");
    long step = 0;
    if (file != NULL) {
        if (fscanf(file, "%ld", &step) != 1) step = 0;
        fclose(file);
    }
    time->tv_sec += step;
    return 0;
}
"#;

/// Starts a session on a clock that [`step`] sets.
fn session() -> (Session, PathBuf) {
    let mut place = Place::new();
    let file = |name: &str| place.path().join(name);
    let (source, library, ahead) = (file("clock.c"), file("clock.so"), file("ahead"));
    fs::write(&source, CLOCK).expect("a file");
    step(&ahead, 0);
    let mut compile = place.command("cc");
    compile
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source]);
    let compiled = Running::start(&mut compile).finish(LONG);
    assert_eq!(compiled.code, 0, "{compiled:?}");
    place.set("CLOCK_STEP", &ahead);
    place.set("LD_PRELOAD", &library);
    let session = Session::with(place, &["--desktop", "--size", "320x240"]);
    (session, ahead)
}

/// Sets the clock so many seconds ahead.
fn step(ahead: &Path, seconds: i64) {
    let new = ahead.with_extension("new");
    fs::write(&new, seconds.to_string()).expect("a file");
    fs::rename(&new, ahead).expect("a file");
}

#[test]
fn steps_of_the_wall_clock_neither_end_nor_lengthen_control() {
    let (session, ahead) = session();
    let watching = session.start(&[
        "watch",
        "d1",
        "--control",
        "--viewer",
        "none",
        "--ttl",
        "5s",
        "--json",
    ]);
    watching.line("control is held", |line| line["event"] == "acquired");
    for seconds in [DAY, -DAY, 3 * DAY, 0] {
        step(&ahead, seconds);
        // Longer than the lease lives without being renewed.
        holds_for("control is held", Duration::from_secs(6), || {
            let status = session.status();
            let left = status["lease"]["expiresInMs"].as_u64();
            status["control"] == "human" && left.is_some_and(|left| left <= 5000)
        });
    }
    // Nobody renews it any more: it ends when its time is over, whatever the clock shows.
    stop(&[watching.pid()]);
    step(&ahead, -DAY);
    let status = session.becomes("agent", LONG);
    assert_eq!(status["lastHandBack"]["end"], "timeout", "{status}");
    let held = status["lastHandBack"]["heldMs"].as_f64().expect("a time");
    assert!((24_000.0..120_000.0).contains(&held), "{status}");
    // The clock was this one.
    let stepped = session.event("takeover_timeout");
    let at: Timestamp = serde_json::from_value(stepped["at"].clone()).expect("a time");
    assert!((at.0 as f64) < wall_ms() - 40_000_000.0, "{stepped}");
    watching.signal(Signal::CONT);
    let outcome = watching.finish(LONG);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert_eq!(session.wire().done("ping", json!({}))["protocol"], 1);
}
