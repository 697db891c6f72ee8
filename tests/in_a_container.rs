//! L15: it works in a container whose first process reaps nothing: a zombie is not taken for a living host.

use crate::support::{LONG, Place, Running};

/// Starts a session, kills its host, which stays a zombie for ever, and brings the session back.
const STORY: &str = r#"
set -e
"$HANDOVER" up --json --desktop --size 320x240 >up.json
host=$(sed 's/.*"pid":\([0-9]*\).*/\1/' up.json)
id=$(sed 's/.*"sessionId":"\([^"]*\)".*/\1/' up.json)
kill -9 "$host"
until grep -q '^State:.Z' "/proc/$host/status"; do sleep 0.05; done
"$HANDOVER" sessions --json >sessions.json
"$HANDOVER" up --json --session "$id" >again.json
grep -q '^State:.Z' "/proc/$host/status"
"$HANDOVER" desktop screenshot --json
"$HANDOVER" desktop click 5 5 --json
"$HANDOVER" watch --control --viewer none --json >watch.json &
until "$HANDOVER" takeover status --json | grep -q '"control":"human"'; do sleep 0.05; done
kill -9 $!
until "$HANDOVER" takeover status --json | grep -q '"control":"agent"'; do sleep 0.05; done
"$HANDOVER" down --json
"#;

/// Runs the story and waits for nothing but its end.
const FIRST: &str =
    "import subprocess, sys\nsys.exit(subprocess.Popen(['sh', '-c', sys.argv[1]]).wait())";

#[test]
fn a_first_process_that_reaps_nothing() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: a process namespace of its own needs root");
        return;
    }
    let place = Place::new();
    let mut command = place.command("unshare");
    command.args([
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
        "python3",
        "-c",
        FIRST,
        STORY,
    ]);
    command.env("HANDOVER", env!("CARGO_BIN_EXE_handover"));
    let outcome = Running::start(&mut command).finish(LONG);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let sessions = std::fs::read_to_string(place.project().join("sessions.json"))
        .expect("what `sessions` said");
    assert!(
        !sessions.contains("\"live\":true"),
        "a zombie is taken for a host: {sessions}"
    );
}
