//! The scripted agent: what a model would do with the tools, without the model.
//!
//! It works by what it sees. Fields are found on screenshots by their colour, pages are known by
//! the titles of their windows, and every action is a tool call to `handover mcp`.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::Notify;

use crate::failure::Failure;
use crate::mcp::{Answer, McpClient};
use crate::picture::{Picture, close};
use crate::{site, tell, wait};

/// Pixels that a field or button must at least cover to be taken for one.
const FIELD_PIXELS: usize = 4_000;
/// Pixels that the frame of a field with the focus must at least cover.
const FRAME_PIXELS: usize = 1_000;
/// How long a page may take to show.
const PAGE_TIME: Duration = Duration::from_secs(60);
/// How long one `request_status` waits, in milliseconds.
const STATUS_WAIT_MS: u64 = 30_000;

/// The agent and its connection to `handover mcp`.
pub struct Agent {
    mcp: McpClient,
}

impl Agent {
    /// Starts `handover mcp` for the session and greets it.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn start(handover: &Path, session: &str) -> Result<Self, Failure> {
        let mut command = Command::new(handover);
        command.args(["mcp", "--session", session]);
        Ok(Self {
            mcp: McpClient::start(&mut command).await?,
        })
    }

    /// Opens the site in Chromium and types the user name.
    ///
    /// # Errors
    /// When a tool refuses or the page does not show.
    pub async fn begin(&mut self, url: &str, profile: &Path) -> Result<(), Failure> {
        tell("agent", "opens the harbour office in Chromium");
        let command = chromium(url, profile);
        // Killed with its desktop, Chromium leaves its temporary files; they go with the profile.
        let launch = json!({"command": command, "env": {"TMPDIR": profile}});
        self.must("desktop_launch", launch).await?;
        self.window_titled(site::SIGN_IN_TITLE).await?;

        let (x, y) = self.sees(site::USER_FIELD, "the user name field").await?;
        tell(
            "agent",
            &format!("clicks the user name field at {x},{y} and types its name"),
        );
        self.must("desktop_click", json!({"x": x, "y": y})).await?;
        self.focused((x, y)).await?;
        self.must("desktop_type", json!({"text": site::USER}))
            .await?;
        Ok(())
    }

    /// Asks for a person and returns the id of the request.
    ///
    /// # Errors
    /// When the tool refuses or gives no id.
    pub async fn ask(&mut self) -> Result<String, Failure> {
        let reason = format!(
            "The harbour office asks for the password of {}, which I do not have. Please sign in \
             and hand the desktop back.",
            site::USER
        );
        tell("agent", "does not know the password and asks for a person");
        let answer = self
            .must("request_human", json!({"reason": reason}))
            .await?;
        let id = answer.structured["requestId"].as_str();
        id.map(str::to_owned)
            .ok_or_else(|| Failure::new("request_human gave no requestId"))
    }

    /// Lives through the takeover: waits for its start, tries to act and is refused, says so
    /// through `refused`, and waits for the hand-back. Returns the person's note, if they left one.
    ///
    /// # Errors
    /// When the agent could act while the person was in control, or nobody came within `bound`.
    pub async fn stand_by(
        &mut self,
        request: &str,
        refused: &Notify,
        bound: Duration,
    ) -> Result<Option<String>, Failure> {
        wait::until("a person taking control", bound, async || {
            let status = self.must("takeover_status", json!({})).await?.structured;
            Ok((status["control"] == "human").then_some(()))
        })
        .await?;
        let attempt = self
            .mcp
            .call("desktop_click", json!({"x": 5, "y": 5}))
            .await?;
        match attempt.code() {
            Some("human_control_active") => {
                tell(
                    "agent",
                    &format!(
                        "tries to click and is refused: {}",
                        attempt.structured["message"].as_str().unwrap_or_default()
                    ),
                );
                refused.notify_one();
            }
            _ => {
                let told = format!("the agent acted in human time: {}", attempt.structured);
                return Err(Failure::new(told));
            }
        }
        let status = wait::until("the hand-back", bound, async || {
            let arguments = json!({"requestId": request, "waitMs": STATUS_WAIT_MS});
            self.must("request_status", arguments).await?;
            let status = self.must("takeover_status", json!({})).await?.structured;
            Ok((status["control"] == "agent").then_some(status))
        })
        .await?;
        let hand_back = &status["lastHandBack"];
        if hand_back["end"] != "return" {
            let end = &hand_back["end"];
            return Err(Failure::new(format!(
                "the takeover ended with {end}, not a return"
            )));
        }
        Ok(hand_back["note"].as_str().map(str::to_owned))
    }

    /// Reads the title of the page behind the login and confirms the booking there.
    ///
    /// # Errors
    /// When the page does not show or a tool refuses.
    pub async fn finish(&mut self) -> Result<String, Failure> {
        let (x, y) = self
            .sees(site::CONFIRM_BUTTON, "the button that confirms")
            .await?;
        let title = self.window_titled("Berth ").await?;
        tell("agent", &format!("reads the page's title: {title}"));
        tell("agent", &format!("confirms the booking at {x},{y}"));
        self.must("desktop_click", json!({"x": x, "y": y})).await?;
        self.window_titled(site::CONFIRMED_TITLE).await?;
        Ok(title)
    }

    /// Ends the agent's connection.
    ///
    /// # Errors
    /// When `handover mcp` does not end after its input is closed.
    pub async fn leave(self) -> Result<(), Failure> {
        Ok(self.mcp.close().await?)
    }

    /// A call that has to succeed for the story to go on.
    async fn must(&mut self, tool: &str, arguments: Value) -> Result<Answer, Failure> {
        let answer = self.mcp.call(tool, arguments).await?;
        if answer.is_error {
            return Err(Failure::new(format!("{tool} was refused: {}", answer.text)));
        }
        Ok(answer)
    }

    /// Takes screenshots until something in that colour shows; returns its middle.
    async fn sees(&mut self, colour: [u8; 3], what: &str) -> Result<(usize, usize), Failure> {
        wait::until(what, PAGE_TIME, async || {
            Ok(self.look().await?.find(colour, FIELD_PIXELS))
        })
        .await
    }

    /// Takes screenshots until the field around that point has the focus: a browser takes a moment,
    /// and keys that come before are lost.
    async fn focused(&mut self, field: (usize, usize)) -> Result<(), Failure> {
        wait::until("the focus in the field", PAGE_TIME, async || {
            let frame = self.look().await?.find(site::FOCUS_FRAME, FRAME_PIXELS);
            Ok(frame.filter(|middle| close(*middle, field)).map(drop))
        })
        .await
    }

    async fn look(&mut self) -> Result<Picture, Failure> {
        let answer = self.must("desktop_screenshot", json!({})).await?;
        let png = answer
            .image
            .ok_or_else(|| Failure::new("a screenshot had no image"))?;
        Ok(Picture::from_png(&png)?)
    }

    /// Waits for a window whose title starts so, and returns its whole title.
    async fn window_titled(&mut self, start: &str) -> Result<String, Failure> {
        let what = format!("a window titled {start:?}");
        wait::until(&what, PAGE_TIME, async || {
            let answer = self.must("desktop_windows", json!({})).await?.structured;
            let windows = answer["windows"].as_array().cloned().unwrap_or_default();
            let mut titles = windows.iter().filter_map(|window| window["title"].as_str());
            Ok(titles
                .find(|title| title.starts_with(start))
                .map(str::to_owned))
        })
        .await
    }
}

/// The command line of a Chromium that shows one page, keeps its data in `profile`, and talks to
/// nobody but the site.
fn chromium(url: &str, profile: &Path) -> Vec<String> {
    let mut command: Vec<String> = [
        "chromium",
        "--no-first-run",
        "--no-default-browser-check",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-extensions",
        "--disable-dev-shm-usage",
        "--disable-features=Translate,MediaRouter",
        "--password-store=basic",
        "--force-color-profile=srgb",
        "--force-device-scale-factor=1",
        "--window-position=0,0",
        "--window-size=1000,720",
    ]
    .map(str::to_owned)
    .to_vec();
    if rustix::process::geteuid().is_root() {
        // Chromium's sandbox does not run as root; elsewhere it stays on.
        command.extend(["--no-sandbox", "--test-type"].map(str::to_owned));
    }
    command.push(format!("--user-data-dir={}", profile.display()));
    command.push(format!("--app={url}"));
    command
}
