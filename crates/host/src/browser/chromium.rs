//! Starting Chromium.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use handover_protocol::{ErrorCode, Refusal, Size};
use serde_json::{Value, json};

use super::pipe::Pipe;
use crate::desktop::Programs;
use crate::keeper::pipes::ChannelPipes;
use crate::keeper::wire::Launch;
use crate::xvnc::{self, find_program};

/// The programs that are looked for, in this order.
const PROGRAMS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
];

/// The longest address of a first page, in bytes.
const MAX_ADDRESS: usize = 32 << 10;

/// How long the browser may take until its first page is there. Slow cores under load take seconds.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Time between two looks for it.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What of the host's environment the browser gets: where programs are, the language, and the way out
/// to the network.
const ENVIRONMENT: &[&str] = &[
    "PATH",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "TZ",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];

/// What Chromium logs before it gives up for want of a sandbox.
const NO_SANDBOX: &str = "No usable sandbox";

/// A browser that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserCommand {
    program: PathBuf,
    /// The first page's address.
    address: String,
}

fn bad(message: impl Into<String>) -> Refusal {
    Refusal::bad_param("browser", message)
}

/// The browser that shows `address` first, or an empty page if that is empty.
///
/// # Errors
/// `bad_params` if it is no address, or no browser is installed.
pub fn command(address: &str) -> Result<BrowserCommand, Refusal> {
    let address = match address {
        "" => "about:blank",
        address => address,
    };
    // Nothing that the browser would take for an option.
    let scheme = address.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let is_plain = !address.contains(char::is_control);
    if !is_scheme || !is_plain || address.len() > MAX_ADDRESS {
        return Err(bad(
            "`browser` is no address; give one such as https://example.org/, or an empty text",
        ));
    }
    let program = PROGRAMS.iter().find_map(|name| find_program(name));
    let program = program.ok_or_else(|| {
        bad("no Chromium is installed; install it (Debian package chromium), or leave `browser` out")
    })?;
    Ok(BrowserCommand {
        program,
        address: address.to_owned(),
    })
}

/// Starts it below the desktop's keeper, and waits for its first page.
pub(super) async fn launch(
    programs: &Programs,
    command: &BrowserCommand,
    size: Size,
) -> Result<Pipe, Refusal> {
    let unavailable = |why: String| {
        Refusal::new(
            ErrorCode::DisplayUnavailable,
            format!(
                "failed to start the browser of desktop {}: {why}",
                programs.desktop
            ),
        )
    };
    let profile = programs.files.dir.join("profile");
    crate::system::dirs::private_dir(&profile, "XDG_RUNTIME_DIR")
        .map_err(|error| unavailable(error.to_string()))?;
    let log = programs
        .logs
        .join(format!("{}-browser.log", programs.desktop));
    let log_start = std::fs::metadata(&log).map_or(0, |log| log.len());
    let launch = Launch {
        command: words(command, &profile, size),
        cwd: profile.clone(),
        env: environment(programs, &profile),
        log: log.clone(),
        stdio: None,
        channel: None,
    };
    let pipes =
        ChannelPipes::make(&programs.files.dir).map_err(|error| unavailable(error.to_string()))?;
    let (_, channel) = programs
        .keeper
        .launch_driven(&launch, pipes)
        .await
        .map_err(|error| unavailable(error.to_string()))?;
    let mut pipe = Pipe::new(channel);
    match tokio::time::timeout(READY_WITHIN, first_page(&mut pipe)).await {
        Ok(Ok(())) => Ok(pipe),
        Ok(Err(error)) => Err(unavailable(why_it_ended(&error, &log, log_start))),
        Err(_) => Err(unavailable(format!(
            "no page within {} s; see {}",
            READY_WITHIN.as_secs(),
            log.display()
        ))),
    }
}

/// Why a browser ended during its start: the end of its log, and what to do about what often is the reason.
fn why_it_ended(error: &std::io::Error, log: &Path, log_start: u64) -> String {
    let tail = xvnc::log_tail(log, log_start);
    let ended = if tail.contains(NO_SANDBOX) {
        // Pages' scripts are not run without one behind the user's back.
        "Chromium finds no sandbox that it may use; allow user namespaces (sudo sysctl kernel.unprivileged_userns_clone=1 \
         user.max_user_namespaces=1000; where AppArmor restricts them, give Chromium a profile with `userns,`), or install the \
         Debian package chromium-sandbox"
            .to_owned()
    } else if error.kind() == std::io::ErrorKind::UnexpectedEof {
        "it ended during its start".to_owned()
    } else {
        error.to_string()
    };
    format!("{ended}; its log {} ends with:\n{tail}", log.display())
}

fn words(command: &BrowserCommand, profile: &Path, size: Size) -> Vec<String> {
    let mut words = vec![command.program.display().to_string()];
    words.extend(
        [
            "--remote-debugging-pipe",
            "--no-first-run",
            "--no-default-browser-check",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--disable-features=Translate,MediaRouter",
            "--disk-cache-size=67108864",
            "--password-store=basic",
            "--ozone-platform=x11",
            "--force-color-profile=srgb",
            "--force-device-scale-factor=1",
            "--window-position=0,0",
        ]
        .map(str::to_owned),
    );
    words.push(format!("--window-size={},{}", size.width, size.height));
    words.push(format!("--user-data-dir={}", profile.display()));
    if rustix::process::geteuid().is_root() {
        // Chromium's sandbox does not run as root; elsewhere it stays on.
        words.extend(["--no-sandbox", "--test-type"].map(str::to_owned));
    }
    words.push(command.address.clone());
    words
}

/// The whole environment: a home of its own, and nothing that may be a secret.
fn environment(programs: &Programs, profile: &Path) -> BTreeMap<String, String> {
    let kept = ENVIRONMENT
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
    let mut env = programs.environment(kept, |_| false);
    env.insert("HOME".into(), profile.display().to_string());
    env
}

/// Waits until the browser answers and has a page.
async fn first_page(pipe: &mut Pipe) -> std::io::Result<()> {
    // The gate's own numbers begin anew behind it.
    for number in 1u64.. {
        let ask = json!({"id": number, "method": "Target.getTargets"});
        pipe.send(ask.to_string().into_bytes());
        let answer = loop {
            let message = pipe.receive().await?;
            let message: Value = serde_json::from_slice(&message)?;
            if message["id"] == number {
                break message;
            }
        };
        let targets = answer["result"]["targetInfos"].as_array();
        if targets.is_some_and(|targets| targets.iter().any(|target| target["type"] == "page")) {
            return Ok(());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_refused() {
        for address in [
            "--remote-debugging-port=9222",
            "example",
            ":x",
            "http://a\n--x",
            "-x:y",
        ] {
            let refusal = command(address).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::BadParams, "{address}");
            assert!(refusal.message.contains("no address"), "{address}");
        }
    }
}
