//! Texts arrive in a terminal as they were planned, whatever the keyboard layout.

use std::path::PathBuf;

use handover_host::display::{Additions, Stream, connect};
use handover_rfb::clipboard::{Capabilities, ClipboardMessage, EXTENDED_CLIPBOARD, Sender};
use handover_rfb::encodings::{LED_STATE, RAW};
use handover_rfb::framing::{ServerEvent, ServerMessage, ServerParser};
use handover_rfb::handshake::Credentials;
use handover_rfb::input;
use handover_rfb::keys::{Keysym, keysym_for_char};
use handover_rfb::typing::{Method, PASTE_CHORD, TypingPlan, plan};

use crate::xvnc::{Xvnc, until};

/// The host's input connection, as far as typing needs it.
struct Typist {
    stream: Stream,
    parser: ServerParser,
}

impl Typist {
    async fn connect(xvnc: &Xvnc) -> Self {
        let credentials = Credentials::Password("full".into());
        let connected = connect(&xvnc.upstream(), credentials)
            .await
            .expect("connected");
        assert!(connected.rest.is_empty());
        let mut out = Vec::new();
        input::set_encodings(&[RAW, LED_STATE, EXTENDED_CLIPBOARD], &mut out);
        encode(&ClipboardMessage::Caps(Capabilities::OURS), &mut out);
        connected.stream.write_all(&out).await.expect("sent");
        Self {
            stream: connected.stream,
            parser: ServerParser::new(connected.init.format),
        }
    }

    async fn type_text(&mut self, text: &str, method: Method) {
        let mut out = Vec::new();
        match plan(text, method).expect("typable") {
            TypingPlan::Keys(strokes) => {
                for stroke in strokes {
                    stroke.keysym.message(true).encode(&mut out);
                    stroke.keysym.message(false).encode(&mut out);
                }
                self.stream.write_all(&out).await.expect("sent");
            }
            TypingPlan::Paste(text) => {
                encode(&ClipboardMessage::Notify { text: true }, &mut out);
                let [shift, insert] = PASTE_CHORD.map(|key| key.message(true));
                let [shift_up, insert_up] = PASTE_CHORD.map(|key| key.message(false));
                for message in [shift, insert, insert_up, shift_up] {
                    message.encode(&mut out);
                }
                self.stream.write_all(&out).await.expect("sent");
                self.provide_when_asked(text).await;
            }
        }
    }

    async fn provide_when_asked(&mut self, text: String) {
        let mut buffer = vec![0; 65536];
        loop {
            let read = self.stream.read(&mut buffer).await.expect("open");
            assert_ne!(read, 0, "closed");
            let mut at = 0;
            while let Some(event) = self
                .parser
                .next_event(&buffer[..read], &mut at)
                .expect("sound")
            {
                let ServerEvent::Message(ServerMessage::ExtendedCutText(body)) = event else {
                    continue;
                };
                let message = ClipboardMessage::decode(&body).expect("sound");
                if message == (ClipboardMessage::Request { text: true }) {
                    let mut out = Vec::new();
                    encode(&ClipboardMessage::Provide(Some(text)), &mut out);
                    self.stream.write_all(&out).await.expect("sent");
                    return;
                }
            }
        }
    }
}

fn encode(message: &ClipboardMessage, out: &mut Vec<u8>) {
    message.encode(Sender::Client, out).expect("small");
}

/// An xterm that writes every byte it is given to a file.
async fn terminal(xvnc: &mut Xvnc) -> PathBuf {
    let file = xvnc.directory.path().join("typed");
    let script = format!("stty raw -echo; exec cat > {}", file.display());
    xvnc.run("xterm", &["-u8", "-e", "sh", "-c", &script]);
    let x11 = xvnc.x11();
    until("the terminal", async || file.exists().then_some(())).await;
    let window = until("its window", async || x11.windows().await.ok()?.pop()).await;
    until("the focus", async || x11.focus(window.id).await.ok()).await;
    file
}

async fn arrives(file: &PathBuf, text: &str) {
    let want = text.replace('\n', "\r");
    until("the text", async || {
        let got = std::fs::read(file).expect("written");
        let got = String::from_utf8_lossy(&got).into_owned();
        assert!(got.len() <= want.len(), "{got:?}");
        (got == want).then_some(())
    })
    .await;
}

#[tokio::test]
async fn every_ascii_character_arrives_under_every_latin_layout() {
    let ascii: Vec<u8> = (b' '..=b'~').collect();
    let ascii = String::from_utf8(ascii).expect("ASCII") + "\t\nA";
    for layout in ["us", "de", "fr", "us,ru"] {
        let mut xvnc = Xvnc::start("640x480");
        let set = xvnc.command("setxkbmap").arg(layout).status();
        assert!(set.expect("setxkbmap is installed").success());
        let file = terminal(&mut xvnc).await;
        let mut typist = Typist::connect(&xvnc).await;
        typist.type_text(&ascii, Method::Auto).await;
        arrives(&file, &ascii).await;
        assert!(!caps_lock(&xvnc), "a capital at the end leaves it on");
    }
}

fn caps_lock(xvnc: &Xvnc) -> bool {
    let output = xvnc
        .command("xset")
        .arg("q")
        .stdout(std::process::Stdio::piped())
        .output()
        .expect("xset is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, state) = text.split_once("Caps Lock:").expect("its state");
    state.trim_start().starts_with("on")
}

#[tokio::test]
async fn the_first_key_takes_the_mapping() {
    let xvnc = Xvnc::start("320x200");
    let x11 = xvnc.x11();
    assert_eq!(x11.mapping_is_of_rfb().await, Ok(false));
    let mut typist = Typist::connect(&xvnc).await;
    assert_eq!(x11.mapping_is_of_rfb().await, Ok(false));
    typist.type_text("a", Method::Keys).await;
    until("its mapping", async || {
        (x11.mapping_is_of_rfb().await == Ok(true)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_key_that_the_display_would_drop_is_known_before() {
    let xvnc = Xvnc::start("320x200");
    let x11 = xvnc.x11();
    let cyrillic: Vec<_> = ('а'..='я').filter_map(keysym_for_char).collect();
    assert_eq!(x11.unpressable(cyrillic[..19].to_vec()).await, Ok(None));
    let dropped = x11.unpressable(cyrillic.clone()).await;
    assert_eq!(dropped, Ok(Some(cyrillic[19])));

    // As the server itself does it.
    let typist = Typist::connect(&xvnc).await;
    let mut out = Vec::new();
    // The very first key makes the server replace the mapping as a whole.
    for keysym in [Keysym(0x61)].iter().chain(&cyrillic[..19]) {
        keysym.message(true).encode(&mut out);
        keysym.message(false).encode(&mut out);
    }
    typist.stream.write_all(&out).await.expect("sent");
    until("the last of the keys added", async || {
        let dropped = x11.unpressable(cyrillic[18..].to_vec()).await;
        (dropped == Ok(Some(cyrillic[19]))).then_some(())
    })
    .await;
    assert!(!xvnc.log().contains("Failure adding"));
    assert_eq!(x11.unpressable(cyrillic[..19].to_vec()).await, Ok(None));
}

#[tokio::test]
async fn what_a_layout_lacks_is_pasted() {
    let mut xvnc = Xvnc::start("640x480");
    let set = xvnc.command("setxkbmap").arg("ru").status();
    assert!(set.expect("setxkbmap is installed").success());
    let file = terminal(&mut xvnc).await;
    let mut typist = Typist::connect(&xvnc).await;
    let text = "The quick brown fox jumps over the lazy dog.";
    let lacking = xvnc
        .x11()
        .untypable(text, Additions::Refused)
        .await
        .expect("read");
    assert!(lacking.is_some());
    typist.type_text(text, Method::Paste).await;
    arrives(&file, text).await;
}

#[tokio::test]
async fn every_script_and_length_arrives_by_pasting() {
    let mut xvnc = Xvnc::start("640x480");
    let file = terminal(&mut xvnc).await;
    let mut typist = Typist::connect(&xvnc).await;
    let mut all = String::new();
    for text in [
        "é ß ü ñ € – “x” Ω ж ÇÅ",
        "漢字 日本語 한국어",
        "😀 👍🏽 👨‍👩‍👧",
        "a\nb\n\nc\n",
        "x\ty\t\tz é",
        &"naïve 漢字 😀\tline\n".repeat(600),
    ] {
        typist.type_text(text, Method::Paste).await;
        all += text;
        arrives(&file, &all).await;
    }
}
