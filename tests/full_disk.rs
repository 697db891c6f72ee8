//! A full disk never keeps a person's input open, never loses a lease, and never grants what cannot be stored.

use std::fs;
use std::process::Command;

use serde_json::json;

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
