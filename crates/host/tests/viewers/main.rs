//! The gate with real sockets and a real Xvnc, without the rest of a host.

mod client;
mod xvnc;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use client::{Client, SOON, Seen};
use handover_control::{Control, Epoch, Phase, ViewerId};
use handover_host::desktop::view::{ControlView, Copied, ViewerEvent, ViewerEventKind};
use handover_host::display::{Address, Upstream};
use handover_host::viewer::{Patience, Settings, VIEWERS_LIMIT, Viewers};
use handover_protocol::{ErrorCode, Refusal};
use handover_rfb::clipboard::ClipboardMessage;
use handover_rfb::framing::ServerMessage;
use handover_rfb::handshake::Credentials;
use handover_rfb::input::{self, InputMessage};
use handover_rfb::{PixelFormat, encodings, gate};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use xvnc::Xvnc;

/// A desktop as its viewers see it, played by the test.
struct Desktop {
    xvnc: Xvnc,
    viewers: Viewers,
    control: watch::Sender<ControlView>,
    events: mpsc::Receiver<ViewerEvent>,
    upstream: Upstream,
}

impl Desktop {
    fn start() -> Desktop {
        Self::start_with(Patience::default(), Arc::new(|_, _| Ok(())))
    }

    fn start_with(patience: Patience, admit: Arc<handover_host::viewer::Admit>) -> Desktop {
        let xvnc = Xvnc::start(60);
        let (control, following) = watch::channel(ControlView {
            control: Control::Agent,
            phase: Phase::Steady,
            pause: None,
            epoch: Epoch(1),
            holder: None,
            title: "d1 agent".into(),
            clipboard: None,
        });
        let (sender, events) = mpsc::channel(256);
        let upstream = Upstream::new(Address::Unix(xvnc.socket()));
        let viewers = Viewers::new(Settings {
            upstream: upstream.clone(),
            credentials: Credentials::Password(Xvnc::VIEW.into()),
            server: gate::Upstream::OWN,
            control: following,
            events: sender,
            admit,
            patience,
        });
        Desktop {
            xvnc,
            viewers,
            control,
            events,
            upstream,
        }
    }

    fn open(&self, number: u64) -> PathBuf {
        let path = self.xvnc.path(&format!("view-v{number}.sock"));
        self.viewers
            .open(ViewerId(number), path.clone())
            .expect("opened");
        path
    }

    /// Opens a viewer, connects a client and waits until the desktop knows.
    async fn connect(&mut self, number: u64) -> Client {
        let client = Client::connect(&self.open(number)).await;
        assert_eq!(
            self.event().await,
            (ViewerId(number), ViewerEventKind::Connected)
        );
        client
    }

    fn hold(&self, epoch: u64, holder: Option<u64>) {
        self.control.send_modify(|view| {
            view.epoch = Epoch(epoch);
            view.holder = holder.map(ViewerId);
            view.control = if holder.is_some() {
                Control::Human
            } else {
                Control::Agent
            };
            view.title = format!("epoch {epoch}");
            view.clipboard = None;
        });
    }

    async fn event(&mut self) -> (ViewerId, ViewerEventKind) {
        let event = timeout(SOON, self.events.recv())
            .await
            .expect("an event comes");
        let event = event.expect("viewers are there");
        (event.viewer, event.kind)
    }

    fn no_event(&mut self) {
        assert!(
            self.events.try_recv().is_err(),
            "nobody was to achieve anything"
        );
    }
}

/// The usual patience, but for sockets that nobody uses.
fn unused(milliseconds: u64) -> Patience {
    Patience {
        unused: Duration::from_millis(milliseconds),
        ..Patience::default()
    }
}

fn key(down: bool, keysym: u32) -> InputMessage {
    InputMessage::Key { down, keysym }
}

/// Waits until the gate has handled everything that the client sent: its answer to a fence has gone to the display
/// and back.
async fn settle(client: &mut Client) {
    client
        .send(|out| input::fence(input::FENCE_REQUEST, b"settle", out))
        .await;
    loop {
        if let Seen::Message(ServerMessage::Fence(fence)) = client.next().await
            && fence.payload == b"settle"
        {
            return;
        }
    }
}

#[tokio::test]
async fn an_observer_sees_the_desktop_and_moves_nothing() {
    let mut desktop = Desktop::start();
    let mut client = desktop.connect(1).await;
    assert_eq!((client.init.width, client.init.height), (1280, 800));
    assert_eq!(client.init.name, "d1 agent");
    client
        .encodings(&[encodings::RAW, encodings::EXTENDED_CLIPBOARD])
        .await;
    client.request(false).await;
    assert_eq!(client.update().await, 1280 * 800 * 4);

    let before = desktop.xvnc.pointer();
    client
        .input(InputMessage::Pointer {
            mask: 1,
            x: 5,
            y: 6,
        })
        .await;
    client.input(key(true, 0x61)).await;
    client
        .input(InputMessage::QemuKey {
            down: true,
            keysym: 0x61,
            keycode: 30,
        })
        .await;
    client.send(|out| input::cut_text("mine", out)).await;
    client
        .send(|out| out.extend([251, 0, 4, 0, 3, 0, 0, 0]))
        .await;
    settle(&mut client).await;
    desktop.no_event();
    assert_eq!(desktop.xvnc.pointer(), before);
}

#[tokio::test]
async fn control_comes_and_goes_on_an_open_connection() {
    let mut desktop = Desktop::start();
    let mut holder = desktop.connect(1).await;
    let mut observer = desktop.connect(2).await;
    let list = [
        encodings::RAW,
        encodings::DESKTOP_NAME,
        encodings::EXTENDED_CLIPBOARD,
    ];
    for client in [&mut holder, &mut observer] {
        client.encodings(&list).await;
        settle(client).await;
    }
    desktop.hold(2, Some(1));
    for client in [&mut holder, &mut observer] {
        loop {
            if let Seen::Rectangle(rectangle) = client.next().await {
                assert_eq!(rectangle.encoding, encodings::DESKTOP_NAME);
                break;
            }
        }
        client.input(key(true, 0x61)).await;
        client
            .input(InputMessage::Pointer {
                mask: 0,
                x: 7,
                y: 8,
            })
            .await;
        settle(client).await;
    }
    let event = timeout(SOON, desktop.events.recv())
        .await
        .expect("in time")
        .expect("an event");
    let pressed = ViewerEventKind::Input(key(true, 0x61));
    assert_eq!(
        event,
        ViewerEvent {
            viewer: ViewerId(1),
            epoch: Epoch(2),
            kind: pressed
        }
    );
    let moved = InputMessage::Pointer {
        mask: 0,
        x: 7,
        y: 8,
    };
    assert_eq!(
        desktop.event().await,
        (ViewerId(1), ViewerEventKind::Input(moved))
    );
    desktop.no_event();
    // The place that the gate mirrors to the viewer's own connection moves nothing there.
    assert_ne!(desktop.xvnc.pointer(), (7, 8));

    desktop.hold(3, None);
    let named = async |client: &mut Client| {
        while !matches!(client.next().await, Seen::Rectangle(_)) {}
    };
    named(&mut holder).await;
    holder.input(key(false, 0x61)).await;
    settle(&mut holder).await;
    desktop.no_event();
}

#[tokio::test]
async fn only_the_holder_has_the_clipboard() {
    let mut desktop = Desktop::start();
    let mut holder = desktop.connect(1).await;
    let mut observer = desktop.connect(2).await;
    for client in [&holder, &observer] {
        client.encodings(&[encodings::RAW]).await;
    }
    desktop.hold(2, Some(1));
    desktop.control.send_modify(|view| {
        view.clipboard = Some(Copied {
            serial: 1,
            text: "copied".into(),
        });
    });
    loop {
        if let Seen::Message(ServerMessage::CutText(text)) = holder.next().await {
            assert_eq!(text, b"copied");
            break;
        }
    }
    holder
        .send(|out| input::cut_text("from the person", out))
        .await;
    let text = ViewerEventKind::Clipboard("from the person".into());
    assert_eq!(desktop.event().await, (ViewerId(1), text));

    observer
        .send(|out| input::fence(input::FENCE_REQUEST, b"last", out))
        .await;
    loop {
        match observer.next().await {
            Seen::Message(ServerMessage::Fence(fence)) if fence.payload == b"last" => break,
            Seen::Message(ServerMessage::CutText(_) | ServerMessage::ExtendedCutText(_)) => {
                panic!("an observer was sent the clipboard");
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_viewer_with_the_extended_clipboard_is_greeted_when_it_gets_control() {
    let mut desktop = Desktop::start();
    let mut client = desktop.connect(1).await;
    client.encodings(&[encodings::EXTENDED_CLIPBOARD]).await;
    settle(&mut client).await;
    desktop.hold(2, Some(1));
    loop {
        if let Seen::Message(ServerMessage::ExtendedCutText(body)) = client.next().await {
            let message = ClipboardMessage::decode(&body).expect("valid");
            assert!(matches!(message, ClipboardMessage::Caps(_)));
            break;
        }
    }
}

#[tokio::test]
async fn formats_change_in_the_middle_of_updates() {
    let desktop = Desktop::start();
    let mut desktop = desktop;
    let mut client = desktop.connect(1).await;
    client.encodings(&[encodings::RAW, encodings::CURSOR]).await;
    for round in 0..60u16 {
        for _ in 0..3 {
            client.request(false).await;
        }
        let bits = [8, 16, 32][usize::from(round % 3)];
        let format = PixelFormat {
            bits_per_pixel: bits,
            depth: bits.min(24),
            max: if bits == 32 { [255; 3] } else { [3, 3, 3] },
            shift: if bits == 32 { [16, 8, 0] } else { [4, 2, 0] },
            ..PixelFormat::BGRX
        };
        // The client marks the change as the gate does, so that this test can follow the stream as well.
        let sync = input::FENCE_REQUEST | input::FENCE_SYNC_NEXT;
        client
            .send(|out| input::fence(sync, &round.to_be_bytes(), out))
            .await;
        client
            .send(|out| input::set_pixel_format(&format, out))
            .await;
        client.request(false).await;
        loop {
            if let Seen::Message(ServerMessage::Fence(fence)) = client.next().await
                && fence.payload == round.to_be_bytes()
            {
                client.set_format(format);
                break;
            }
        }
        assert!(client.update().await >= 1280 * 800 * usize::from(bits / 8));
    }
    desktop.no_event();
}

#[tokio::test]
async fn an_unused_socket_expires_unless_it_is_the_holders() {
    let mut desktop = Desktop::start_with(unused(1500), Arc::new(|_, _| Ok(())));
    desktop.hold(2, Some(2));
    let unused = desktop.open(1);
    let holders = desktop.open(2);
    assert!(unused.exists());
    assert_eq!(desktop.event().await, (ViewerId(1), ViewerEventKind::Gone));
    assert!(!unused.exists());
    let later = timeout(Duration::from_millis(700), desktop.events.recv()).await;
    assert!(later.is_err() && holders.exists());
    let client = Client::connect(&holders).await;
    assert_eq!(
        desktop.event().await,
        (ViewerId(2), ViewerEventKind::Connected)
    );
    assert!(!holders.exists(), "a viewer is for one client");
    drop(client);
    assert_eq!(desktop.event().await, (ViewerId(2), ViewerEventKind::Gone));
}

#[tokio::test]
async fn whoever_only_knocks_leaves_the_socket_as_it_was() {
    let mut desktop = Desktop::start();
    let path = desktop.open(1);
    let knock = || std::os::unix::net::UnixStream::connect(&path).expect("listening");
    for _ in 0..3 {
        drop(knock());
    }
    let _silent = knock();
    let _client = Client::connect(&path).await;
    assert_eq!(
        desktop.event().await,
        (ViewerId(1), ViewerEventKind::Connected)
    );
}

#[tokio::test]
async fn whoever_is_not_admitted_is_not_served() {
    let refuse = |_, _| Err(Refusal::new(ErrorCode::CallerRefused, "below an agent"));
    let desktop = Desktop::start_with(Patience::default(), Arc::new(refuse));
    let upstream = Upstream::new(Address::Unix(desktop.open(1)));
    let refused = handover_host::display::connect(&upstream, Credentials::None).await;
    assert!(refused.is_err());
    assert_eq!(desktop.upstream.connections_made(), 0);
}

#[tokio::test]
async fn there_is_a_limit_and_an_end_frees_a_place() {
    let mut desktop = Desktop::start_with(unused(5000), Arc::new(|_, _| Ok(())));
    for number in 0..VIEWERS_LIMIT as u64 {
        desktop.open(number);
    }
    let path = desktop.xvnc.path("one-more.sock");
    let refused = desktop
        .viewers
        .open(ViewerId(99), path)
        .expect_err("too many");
    assert_eq!(refused.code, ErrorCode::QueueFull);
    assert_eq!(desktop.event().await.1, ViewerEventKind::Gone);
    desktop.open(100);
}

#[tokio::test]
async fn a_forbidden_message_closes_that_viewer_and_no_other() {
    let mut desktop = Desktop::start();
    let mut bad = desktop.connect(1).await;
    let mut good = desktop.connect(2).await;
    bad.send(|out| out.extend([7, 0, 0, 0])).await;
    let end = timeout(SOON, bad.next_or_end())
        .await
        .expect("closed in time");
    assert_eq!(end, None);
    assert_eq!(desktop.event().await, (ViewerId(1), ViewerEventKind::Gone));
    good.request(false).await;
    good.update().await;
}

#[tokio::test]
async fn a_client_that_never_reads_harms_nobody() {
    let mut desktop = Desktop::start();
    let deaf = desktop.connect(1).await;
    let mut good = desktop.connect(2).await;
    for _ in 0..200 {
        deaf.request(false).await;
    }
    for _ in 0..20 {
        good.request(false).await;
        assert!(good.update().await >= 1280 * 800 * 4);
    }
    drop(deaf);
    assert_eq!(desktop.event().await, (ViewerId(1), ViewerEventKind::Gone));
}

#[tokio::test]
async fn a_client_that_never_reads_is_closed_in_the_end() {
    let stalled = Duration::from_millis(500);
    let patience = Patience {
        stalled,
        ..Patience::default()
    };
    let mut desktop = Desktop::start_with(patience, Arc::new(|_, _| Ok(())));
    let deaf = desktop.connect(1).await;
    let idle = desktop.connect(2).await;
    deaf.request(false).await;
    assert_eq!(desktop.event().await, (ViewerId(1), ViewerEventKind::Gone));
    // One that is owed nothing may be silent for as long as it likes.
    drop(idle);
    assert_eq!(desktop.event().await, (ViewerId(2), ViewerEventKind::Gone));
}

#[tokio::test]
async fn input_that_the_desktop_does_not_take_holds_up_nothing_else() {
    let mut desktop = Desktop::start();
    let mut client = desktop.connect(1).await;
    desktop.hold(2, Some(1));
    settle(&mut client).await;
    client.request(false).await;
    let keys = 2000u32;
    client
        .send(|out| (0..keys).for_each(|keysym| key(true, keysym).encode(out)))
        .await;
    // The queue to the desktop is full by far, and the picture comes all the same.
    client.update().await;
    for keysym in 0..keys {
        let expected = ViewerEventKind::Input(key(true, keysym));
        assert_eq!(desktop.event().await, (ViewerId(1), expected));
    }
}

#[tokio::test]
async fn viewers_end_with_their_desktop() {
    let mut desktop = Desktop::start();
    let mut client = desktop.connect(1).await;
    let unused = desktop.open(2);
    drop(desktop.control);
    let end = async { while client.next_or_end().await.is_some() {} };
    timeout(SOON, end).await.expect("closed in time");
    for _ in 0..2 {
        let event = timeout(SOON, desktop.events.recv()).await.expect("in time");
        assert_eq!(event.expect("an event").kind, ViewerEventKind::Gone);
    }
    assert!(!unused.exists());
    assert_eq!(desktop.viewers.count(), 0);
}

#[tokio::test]
async fn a_display_that_dies_takes_its_viewers_along() {
    let mut desktop = Desktop::start();
    let _client = desktop.connect(1).await;
    desktop.xvnc.end();
    assert_eq!(desktop.event().await, (ViewerId(1), ViewerEventKind::Gone));
}
