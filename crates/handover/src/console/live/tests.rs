use handover_host::system::clock;
use handover_protocol::Timestamp;
use tokio::io::DuplexStream;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use super::*;
use crate::console::grant::Until;
use crate::console::origin::Names;
use crate::console::scope::Scope;

/// Far longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

fn console() -> Arc<Console> {
    let names = Names::new([127, 0, 0, 1].into(), &[], false).unwrap();
    Arc::new(Console::new(names, 1))
}

/// A browser of one desktop whose time is over so soon.
fn phone(left: Duration) -> Arc<Grant> {
    let scope = Scope::Desktop {
        session: "nosuch".into(),
        desktop: "d1".into(),
    };
    let until = Until {
        moment: clock::now() + left,
        shown: Timestamp(0),
    };
    Arc::new(Grant::new(scope, Some(until)))
}

async fn connect(grant: Arc<Grant>, console: Arc<Console>) -> WebSocketStream<DuplexStream> {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let server = WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
    tokio::spawn(serve(server, grant, console));
    WebSocketStream::from_raw_socket(ours, Role::Client, None).await
}

/// Reads to the end; the goodbye.
async fn goodbye(mut browser: WebSocketStream<DuplexStream>) -> Option<CloseFrame> {
    let mut said = None;
    let read = async {
        while let Some(Ok(message)) = browser.next().await {
            if let Message::Close(frame) = message {
                said = frame;
            }
        }
    };
    tokio::time::timeout(LONG, read).await.unwrap();
    said
}

#[tokio::test]
async fn it_closes_when_the_time_of_its_link_is_over() {
    let browser = connect(phone(Duration::from_millis(200)), console()).await;
    let goodbye = goodbye(browser).await.unwrap();
    assert_eq!(goodbye.code, CloseCode::Policy);
    assert_eq!(goodbye.reason.as_str(), "the time of this link is over");
}

#[tokio::test]
async fn it_closes_with_the_console() {
    let console = console();
    let browser = connect(Arc::new(Grant::new(Scope::All, None)), Arc::clone(&console)).await;
    console.stop();
    assert_eq!(goodbye(browser).await.unwrap().code, CloseCode::Away);
    // One that comes too late, as well.
    let late = connect(Arc::new(Grant::new(Scope::All, None)), console).await;
    assert_eq!(goodbye(late).await.unwrap().code, CloseCode::Away);
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_is_silent_is_closed() {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let server = WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
    // It does not even answer when it is asked whether it is there.
    let began = tokio::time::Instant::now();
    serve(server, Arc::new(Grant::new(Scope::All, None)), console()).await;
    let lasted = began.elapsed();
    assert!(lasted >= SILENT && lasted < 2 * SILENT, "{lasted:?}");
    drop(ours);
}
