//! A full disk never keeps a person's input open, never loses a lease, and never grants what cannot be stored.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::support::scripted::{Scripted, agent, becomes, shell, spawn};
use crate::support::{LONG, Place, Recorder, SHORT, Session, eventually};

/// A small file system over a place's state, unmounted when dropped.
struct Small(std::path::PathBuf);

impl Small {
    fn mount(place: &Place) -> Option<Self> {
        let path = place.state();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs"])
            .arg(&path)
            .status();
        mounted
            .is_ok_and(|status| status.success())
            .then_some(Self(path))
    }

    /// Fills it to the last byte.
    fn fill(&self) {
        let mut size = 1 << 20;
        let mut number = 0;
        while size > 0 {
            number += 1;
            if fs::write(self.0.join(format!("filler{number}")), vec![1; size]).is_err() {
                size /= 2;
            }
        }
    }

    fn free(&self) {
        for entry in fs::read_dir(&self.0).expect("the file system").flatten() {
            if entry.file_name().to_string_lossy().starts_with("filler") {
                fs::remove_file(entry.path()).expect("removed");
            }
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_in_human_time() {
    let place = Place::new();
    let Some(disk) = Small::mount(&place) else {
        eprintln!("skipped: mounting a small file system needs root");
        return;
    };
    let session = Session::with(place, &["--desktop", "--size", "320x240"]);
    let recorder = Recorder::everything(&session.display());
    let mut holder = session.take(json!({}));
    holder.viewer.key(0xFFE1, true);
    eventually("Shift is held", SHORT, || {
        (recorder.held().len() == 1).then_some(())
    });
    disk.fill();

    // The lease lives on and is renewed; the person's input arrives.
    let proof = holder.proof();
    holder.wire.done("control.renew", proof.clone());
    holder.viewer.tap("h");
    eventually("the person types on", SHORT, || {
        (recorder.presses(u32::from(b'h')) == 1).then_some(())
    });
    // Control goes back, with everything released.
    holder.wire.done("control.return", proof);
    assert_eq!(session.status()["control"], "agent");
    eventually("nothing is held", SHORT, || {
        recorder.held().is_empty().then_some(())
    });
    let before = recorder.presses(u32::from(b'h'));
    holder.viewer.tap("h");
    // What grants power is refused as long as it cannot be stored.
    let refused = session.wire().refused("control.acquire", json!({}));
    assert_eq!(refused.code, "storage_failed");
    assert_eq!(recorder.presses(u32::from(b'h')), before);

    disk.free();
    let mut wire = session.wire();
    eventually("takeovers work again", LONG, || {
        wire.call("control.acquire", json!({})).ok()
    });
    // What was kept in memory is on record now, and the record says that it came late.
    session.event("takeover_return");
    session.event("gap");
    assert_eq!(session.cli(&["verify"]).code, 0);
    drop(session);
    drop(disk);
}

/// Agents: nothing begins and nothing is sent that the record would miss, but every one can be ended.
#[test]
fn a_full_disk_starts_and_steers_nobody_and_ends_everybody() {
    let place = Place::new();
    let Some(disk) = Small::mount(&place) else {
        eprintln!("skipped: mounting a small file system needs root");
        return;
    };
    let mut session = Session::with(place, &["--max-agents", "2"]);
    let working = Scripted::start(&session, "hold", json!({}));
    working.hears("hold");
    becomes(&session, &working.id, "running");
    let plain = shell(&session, "sleep 1000");
    becomes(&session, &plain, "running");
    let queued = shell(&session, "true");
    disk.fill();
    // The log may have room for a little more.
    eventually("the record is full", LONG, || {
        let steer = json!({"id": working.id, "text": "x".repeat(8000)});
        let refused = session.wire().call("steer", steer).err()?;
        assert_eq!(refused.code, "storage_failed", "{refused:?}");
        Some(())
    });
    let heard = working.heard().len();
    let mut wire = session.wire();
    let refused = wire.refused("steer", json!({"id": working.id, "text": "unheard"}));
    assert_eq!(refused.code, "storage_failed");
    let command = json!({"driver": "command", "prompt": "", "args": ["true"]});
    let refused = spawn(&session, command).expect_err("nothing is started");
    assert_eq!(refused.code, "storage_failed");

    for (id, status) in [
        (&queued, "cancelled-before-start"),
        (&working.id, "aborted"),
        (&plain, "aborted"),
    ] {
        let ended = wire.done("abort", json!({"id": id}));
        assert_eq!(
            (&ended["status"], &ended["survivors"]),
            (&json!(status), &json!([])),
            "{id}"
        );
    }
    assert_eq!(
        working.heard().len(),
        heard,
        "what was refused was not sent"
    );

    disk.free();
    let gap = session.event("gap");
    assert!(gap["from"].is_u64(), "{gap}");
    eventually("what was done is on record", LONG, || {
        let acts = session.events("human_intervention");
        (acts.iter().filter(|act| act["act"] == "abort").count() == 3).then_some(())
    });
    let next = shell(&session, "echo again");
    becomes(&session, &next, "done");
    assert_eq!(session.cli(&["down"]).code, 0);
    session.again();
    assert_eq!(agent(&session, &working.id)["status"], "aborted");
    assert_eq!(session.cli(&["verify"]).code, 0);
}
