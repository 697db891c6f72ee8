//! The web site of the demo: a login page, and behind it a page worth logging in for.
//!
//! It listens on loopback for as long as the demo runs. The agent knows the user name but not the
//! password, and the title of the page behind the login is made up anew on every run, so whoever
//! knows that title has read it there.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The user that the agent signs in as.
pub const USER: &str = "harbour-master";
/// Title of the login page.
pub const SIGN_IN_TITLE: &str = "Harbour office: sign in";
/// Title of the page after the booking was confirmed.
pub const CONFIRMED_TITLE: &str = "Harbour office: booking confirmed";

/// Colour of the user name field, by which it is found on a screenshot.
pub const USER_FIELD: [u8; 3] = [0xff, 0xe9, 0xa8];
/// Colour of the password field.
pub const PASSWORD_FIELD: [u8; 3] = [0xa8, 0xd8, 0xff];
/// Colour of the frame around the field that has the focus.
pub const FOCUS_FRAME: [u8; 3] = [0xc2, 0x18, 0x5b];
/// Colour of the button that confirms the booking, on the page behind the login.
pub const CONFIRM_BUTTON: [u8; 3] = [0xf2, 0x8c, 0x28];

/// Longest request that is read, in bytes.
const REQUEST_LIMIT: u64 = 16 * 1024;
/// How long a browser may take to send its request.
const REQUEST_TIME: Duration = Duration::from_secs(10);

/// How far a visitor has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// Nobody has signed in yet.
    SignedOut,
    /// The right password was given.
    SignedIn,
    /// The booking was confirmed.
    Confirmed,
}

/// The running site.
pub struct Site {
    address: SocketAddr,
    password: String,
    secret_title: String,
    progress: watch::Receiver<Progress>,
    server: JoinHandle<()>,
}

/// What the server needs to answer a request.
struct Pages {
    password: String,
    secret_title: String,
    /// Value of the cookie that stands for a signed-in visitor.
    cookie: String,
    progress: watch::Sender<Progress>,
}

impl Site {
    /// Starts the site on a free port of the loopback interface.
    ///
    /// # Errors
    /// When the port cannot be bound or the system gives no random bytes.
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (sender, progress) = watch::channel(Progress::SignedOut);
        let pages = Arc::new(Pages {
            password: format!("tide-{}", random_hex(3)?),
            secret_title: format!("Berth {} is reserved", random_hex(3)?.to_uppercase()),
            cookie: random_hex(16)?,
            progress: sender,
        });
        let (password, secret_title) = (pages.password.clone(), pages.secret_title.clone());
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let pages = Arc::clone(&pages);
                tokio::spawn(async move {
                    // A browser opens connections ahead of need and drops them; that is no fault.
                    let _ = tokio::time::timeout(REQUEST_TIME, serve(stream, &pages)).await;
                });
            }
        });
        Ok(Self {
            address,
            password,
            secret_title,
            progress,
            server,
        })
    }

    /// Address of the login page.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The password, which only the person is told.
    pub fn password(&self) -> &str {
        &self.password
    }

    /// Title of the page behind the login, to compare with what the agent read.
    pub fn secret_title(&self) -> &str {
        &self.secret_title
    }

    /// Waits until a visitor has come as far as `wanted`.
    pub async fn reached(&self, wanted: Progress) {
        let mut progress = self.progress.clone();
        // The server task outlives every caller, so the sender cannot be gone.
        let _ = progress.wait_for(|now| *now >= wanted).await;
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// One request, as far as the site looks at it.
struct Request {
    method: String,
    path: String,
    cookie: String,
    form: BTreeMap<String, String>,
}

async fn serve(stream: TcpStream, pages: &Pages) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let Some(request) = read_request(&mut stream).await? else {
        return Ok(());
    };
    let response = pages.answer(&request);
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut limited = stream.take(REQUEST_LIMIT);
    let mut line = String::new();
    if limited.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Ok(None);
    };
    let mut request = Request {
        method: method.to_owned(),
        path: path.to_owned(),
        cookie: String::new(),
        form: BTreeMap::new(),
    };
    let mut length = 0;
    loop {
        let mut header = String::new();
        if limited.read_line(&mut header).await? == 0 {
            return Ok(None);
        }
        let header = header.trim_end();
        if header.is_empty() {
            break;
        }
        let Some((name, value)) = header.split_once(':') else {
            continue;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "cookie" => request.cookie = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = Vec::new();
    limited.take(length).read_to_end(&mut body).await?;
    request.form = parse_form(&String::from_utf8_lossy(&body));
    Ok(Some(request))
}

impl Pages {
    fn answer(&self, request: &Request) -> String {
        let known = request.cookie.contains(&format!("visitor={}", self.cookie));
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/") => page(SIGN_IN_TITLE, &sign_in_form("")),
            ("POST", "/sign-in") => self.sign_in(&request.form),
            ("GET", "/berth") if known => page(&self.secret_title, &self.berth()),
            ("POST", "/confirm") if known => {
                self.progress.send_replace(Progress::Confirmed);
                page(
                    CONFIRMED_TITLE,
                    "<p>The booking is confirmed. Fair winds!</p>",
                )
            }
            ("GET", "/berth") | ("POST", "/confirm") => redirect("/", None),
            _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".into(),
        }
    }

    fn sign_in(&self, form: &BTreeMap<String, String>) -> String {
        let given = |name: &str| form.get(name).map_or("", String::as_str);
        if given("user") == USER && given("word") == self.password {
            self.progress.send_if_modified(|progress| {
                let first = *progress == Progress::SignedOut;
                if first {
                    *progress = Progress::SignedIn;
                }
                first
            });
            redirect("/berth", Some(&self.cookie))
        } else {
            page(
                SIGN_IN_TITLE,
                &sign_in_form("<p>That is not right. Please try again.</p>"),
            )
        }
    }

    fn berth(&self) -> String {
        format!(
            "<p>{}.</p><form method=post action=/confirm>\
             <button style='background:{}'>Confirm the booking</button></form>",
            self.secret_title,
            css(CONFIRM_BUTTON)
        )
    }
}

fn sign_in_form(complaint: &str) -> String {
    format!(
        "{complaint}<form method=post action=/sign-in autocomplete=off>\
         <label>User<input name=user autofocus style='background:{}'></label>\
         <label>Password<input name=word type=password style='background:{}'></label>\
         <button>Sign in</button></form>",
        css(USER_FIELD),
        css(PASSWORD_FIELD)
    )
}

fn page(title: &str, body: &str) -> String {
    let html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><style>\
         body{{font:18px sans-serif;margin:60px auto;width:420px;background:#fff;color:#223}}\
         label{{display:block;margin:18px 0}}\
         input{{display:block;width:100%;height:44px;margin-top:6px;padding:0 10px;\
         font-size:18px;border:4px solid #889;outline:0;box-sizing:border-box}}\
         input:focus{{border-color:{}}}\
         button{{height:48px;width:100%;font-size:18px;border:0;background:#dde}}\
         </style><h1>Harbour office</h1>{body}</html>",
        css(FOCUS_FRAME)
    );
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n{html}",
        html.len()
    )
}

fn redirect(path: &str, cookie: Option<&str>) -> String {
    let cookie = cookie
        .map(|value| format!("Set-Cookie: visitor={value}; HttpOnly; SameSite=Strict\r\n"))
        .unwrap_or_default();
    format!(
        "HTTP/1.1 303 See Other\r\nLocation: {path}\r\n{cookie}Content-Length: 0\r\n\
         Connection: close\r\n\r\n"
    )
}

fn css([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Decodes `application/x-www-form-urlencoded`.
fn parse_form(body: &str) -> BTreeMap<String, String> {
    body.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = (first == b'%')
            .then(|| tail.get(..2))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (escaped, first) {
            (Some(byte), _) => bytes.push(byte),
            (None, b'+') => bytes.push(b' '),
            (None, other) => bytes.push(other),
        }
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `bytes` random bytes from the system, in hexadecimal.
fn random_hex(bytes: usize) -> std::io::Result<String> {
    use std::io::Read;

    let mut buffer = vec![0; bytes];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut buffer)?;
    Ok(buffer.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn fetch(site: &Site, request: String) -> String {
        let mut stream = TcpStream::connect(site.address)
            .await
            .expect("the site listens");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("the site reads");
        let mut answer = String::new();
        stream
            .read_to_string(&mut answer)
            .await
            .expect("the site answers");
        answer
    }

    async fn sign_in(site: &Site, password: &str) -> String {
        let body = format!("user={USER}&word={password}");
        let length = body.len();
        let head = format!("POST /sign-in HTTP/1.1\r\nContent-Length: {length}\r\n\r\n");
        fetch(site, head + &body).await
    }

    #[tokio::test]
    async fn the_secret_is_behind_the_password() {
        let site = Site::start().await.expect("a free port");
        let refused = sign_in(&site, "guess").await;
        assert!(refused.contains("try again") && !refused.contains("Set-Cookie"));
        let direct = fetch(&site, "GET /berth HTTP/1.1\r\n\r\n".into()).await;
        assert!(direct.starts_with("HTTP/1.1 303") && !direct.contains(site.secret_title()));

        let admitted = sign_in(&site, site.password()).await;
        let cookie = admitted
            .lines()
            .find_map(|line| line.strip_prefix("Set-Cookie: "))
            .and_then(|value| value.split(';').next())
            .expect("a cookie");
        site.reached(Progress::SignedIn).await;
        let berth = fetch(
            &site,
            format!("GET /berth HTTP/1.1\r\nCookie: {cookie}\r\n\r\n"),
        )
        .await;
        assert!(berth.contains(&format!("<title>{}</title>", site.secret_title())));
    }

    #[test]
    fn forms_are_decoded() {
        let form = parse_form("user=a+b&word=%c3%a9%2B%zz%4");
        assert_eq!(form["user"], "a b");
        assert_eq!(form["word"], "é+%zz%4");
    }
}
