//! When a host dies with a mouse button down, the keeper lets go of it, where the pointer is.

mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use handover_host::display::{Address, Stream, Upstream, X11, connect, x11::Pointer};
use handover_host::keeper::client::Keeper;
use handover_host::xvnc::{self, ConnectionEvent, DesktopFiles, Started, XvncOptions};
use handover_rfb::handshake::Credentials;
use handover_rfb::input::InputMessage;
use rustix::process::Signal;
use support::{keeper, own_memory};

const GRACE: Duration = Duration::from_secs(2);

/// A display below its keeper, and what a host has of it.
struct Desktop {
    directory: tempfile::TempDir,
    files: DesktopFiles,
    started: Started,
    x11: X11,
}

impl Desktop {
    async fn start() -> (Self, Keeper) {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let files = DesktopFiles {
            dir: at("d1"),
            rfb_socket: at("d1.rfb"),
            keeper_socket: at("keeper-d1.sock"),
            log: at("d1-xvnc.log"),
            keeper_log: at("d1-keeper.log"),
        };
        let (keeper, _events) = keeper(directory.path()).await;
        let options = XvncOptions {
            width: 640,
            height: 480,
            frame_rate: 60,
            title: "a test".into(),
            deadline: Duration::from_secs(30),
        };
        let started = xvnc::start(&keeper, &files, &options).await.unwrap();
        let x11 = X11::spawn(started.stored.display, files.cookie().unwrap()).unwrap();
        let desktop = Self {
            directory,
            files,
            started,
            x11,
        };
        (desktop, keeper)
    }

    /// Presses the left button and drags, as a host does for whoever it lets act.
    async fn drag(&self, to: (u16, u16)) -> Stream {
        let upstream = Upstream::new(Address::Unix(self.files.rfb_socket.clone()));
        let full = Credentials::Password(self.started.passwords.full.clone());
        let connected = connect(&upstream, full).await.unwrap();
        let mut bytes = Vec::new();
        for (mask, x, y) in [(0, 100, 100), (1, 100, 100), (1, to.0, to.1)] {
            InputMessage::Pointer { mask, x, y }.encode(&mut bytes);
        }
        connected.stream.write_all(&bytes).await.unwrap();
        let (x, y) = to;
        let held = Pointer { x, y, buttons: 1 };
        self.becomes("the button is held", held).await;
        connected.stream
    }

    async fn becomes(&self, what: &str, wanted: Pointer) {
        let start = Instant::now();
        loop {
            let pointer = self.x11.pointer().await;
            if pointer == Ok(wanted) {
                return;
            }
            assert!(start.elapsed() < GRACE * 10, "{what}: {pointer:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn adopt(&self) -> Keeper {
        let socket = self.directory.path().join("keeper-d1.sock");
        let stored = &self.started.stored;
        let adopted = Keeper::adopt(&socket, stored.keeper, &stored.boot_id).await;
        adopted.unwrap().0
    }

    /// Connections that the display has accepted so far.
    fn accepted(&mut self) -> usize {
        let log = &mut self.started.connections;
        std::iter::from_fn(|| log.try_next().unwrap())
            .filter(|&event| event == ConnectionEvent::Accepted)
            .count()
    }

    async fn end(self) {
        let keeper = self.adopt().await;
        assert_eq!(keeper.end(GRACE).await, []);
        xvnc::clean_up(&self.files, Some(&self.started.stored)).unwrap();
    }
}

fn keeper_log(directory: &Path) -> String {
    std::fs::read_to_string(directory.join("keeper.log")).unwrap()
}

#[tokio::test]
async fn a_button_of_a_dead_host_is_released_where_it_is() {
    let (desktop, keeper) = Desktop::start().await;
    let process = keeper.process();
    let host = desktop.drag((222, 111)).await;
    // Both connections close, as when the host is killed.
    drop((host, keeper));
    let released = Pointer {
        x: 222,
        y: 111,
        buttons: 0,
    };
    desktop.becomes("the button is released", released).await;
    let log = support::eventually("the keeper should tell of it", || {
        let log = keeper_log(desktop.directory.path());
        (!log.is_empty()).then_some(log)
    })
    .await;
    assert!(log.contains("at 222,111"), "{log}");
    let memory = own_memory(process);
    assert!(memory < 2048, "{memory} KiB of its own memory");
    desktop.end().await;
}

#[tokio::test]
async fn a_host_that_comes_at_any_moment_sees_no_stranger() {
    let (mut desktop, mut keeper) = Desktop::start().await;
    // Around the time of the first look.
    for delay in (80..=140).step_by(5) {
        let host = desktop.drag((200, 200)).await;
        drop((host, keeper));
        // The moment is what is tested; there is nothing to wait for.
        tokio::time::sleep(Duration::from_millis(delay)).await;
        keeper = desktop.adopt().await;
        // From here on the host counts what the display accepts.
        desktop.accepted();
        let x11 = desktop.x11.clone();
        let _ = x11.pointer().await;
        let quiet = tokio::time::timeout(Duration::from_millis(150), async {
            while desktop.started.connections.next().await.unwrap() != ConnectionEvent::Accepted {}
        });
        assert!(quiet.await.is_err(), "a connection after {delay} ms");
    }
    let log = keeper_log(desktop.directory.path());
    assert!(log.contains("released"), "none came in time: {log}");
    desktop.end().await;
}

#[tokio::test]
async fn a_stopped_display_holds_nobody_up() {
    let (mut desktop, keeper) = Desktop::start().await;
    let host = desktop.drag((50, 60)).await;
    let server = desktop.started.stored.server;
    desktop.accepted();
    server.signal(Signal::STOP).unwrap();
    drop((host, keeper));
    let log = support::eventually("the keeper should have given up", || {
        let log = keeper_log(desktop.directory.path());
        (!log.is_empty()).then_some(log)
    })
    .await;
    assert!(log.contains("did not answer"), "{log}");
    let start = Instant::now();
    let keeper = desktop.adopt().await;
    assert!(start.elapsed() < Duration::from_secs(10));
    drop(keeper);
    server.signal(Signal::CONT).unwrap();
    let released = Pointer {
        x: 50,
        y: 60,
        buttons: 0,
    };
    desktop.becomes("the button is released", released).await;
    desktop.end().await;
}
