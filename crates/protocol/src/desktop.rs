//! `desktop.*` and `view.open`.
//!
//! Coordinates are pixels of the framebuffer from its upper left corner. They are wider than any
//! desktop, so that a point outside gets `out_of_bounds` and not `bad_params`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::control::HandBack;
use crate::ids::{DesktopId, Hidden, ViewerName};
use crate::session::Size;

/// A mouse button: 1 left, 2 middle, 3 right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Button(u8);

impl Button {
    /// The left button.
    pub const LEFT: Self = Self(1);

    /// Its number, 1 to 3.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl Default for Button {
    fn default() -> Self {
        Self::LEFT
    }
}

/// A number that is no [`Button`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a button must be 1 (left), 2 (middle) or 3 (right)")]
pub struct BadButton;

impl TryFrom<u8> for Button {
    type Error = BadButton;

    fn try_from(number: u8) -> Result<Self, BadButton> {
        if (1..=3).contains(&number) {
            Ok(Self(number))
        } else {
            Err(BadButton)
        }
    }
}

impl From<Button> for u8 {
    fn from(button: Button) -> Self {
        button.0
    }
}

impl JsonSchema for Button {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Button".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "integer", "minimum": 1, "maximum": 3 })
    }
}

/// Parameters of `desktop.new`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DesktopNewParams {
    /// Its size; 1280x800 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// The window manager to start, or `none`; openbox where installed if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wm: Option<String>,
    /// Fronts another RFB server instead: `unix:PATH` or `HOST:PORT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attach: Option<String>,
    /// Starts a browser on it, at this address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub browser: Option<BrowserStart>,
}

/// Whether a browser is started, and where it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum BrowserStart {
    /// `true` for one with an empty page.
    Whether(bool),
    /// The address of its first page; empty for an empty page.
    At(String),
}

impl BrowserStart {
    /// The address of the first page, empty for an empty page; none if no browser is to be started.
    pub fn address(&self) -> Option<&str> {
        match self {
            Self::Whether(false) => None,
            Self::Whether(true) => Some(""),
            Self::At(address) => Some(address),
        }
    }
}

/// Result of `desktop.new`, when the first frame is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DesktopNewResult {
    /// Its name.
    pub id: DesktopId,
    /// Its size.
    pub size: Size,
}

/// Parameters of `desktop.destroy`. The desktop must be named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DesktopDestroyParams {
    /// The desktop.
    pub desktop: DesktopId,
}

/// Result of `desktop.destroy`, when every process of it has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DesktopDestroyResult {
    /// Its name.
    pub id: DesktopId,
}

/// Parameters of `desktop.launch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DesktopLaunchParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// The program and its arguments; no shell reads them.
    pub command: Vec<String>,
    /// Where it runs; the project directory if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Further environment variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// Gives it an X cookie that keeps it from other programs' windows and keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<bool>,
}

/// Result of `desktop.launch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DesktopLaunchResult {
    /// Its process.
    pub pid: u32,
    /// Where its output is written.
    pub log: String,
    /// The fencing number it was launched under.
    #[serde(default)]
    pub epoch: u64,
    /// A hand-back that the caller has not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_back: Option<HandBack>,
}

/// Parameters of `desktop.screenshot`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DesktopScreenshotParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// Puts the picture into the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline: Option<bool>,
}

/// Result of `desktop.screenshot`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DesktopScreenshotResult {
    /// Where it is kept; none for a picture of human time, which is not kept.
    pub path: Option<String>,
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
    /// Of the PNG file, in hexadecimal digits.
    pub sha256: String,
    /// The fencing number when it was taken.
    pub epoch: u64,
    /// The PNG file in base64, if asked for, or if it is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub png: Option<String>,
    /// A hand-back that the caller has not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_back: Option<HandBack>,
}

/// Parameters of `desktop.click` and `desktop.double_click`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DesktopClickParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// Pixels from the left.
    pub x: i64,
    /// Pixels from the top.
    pub y: i64,
    /// The button; left if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub button: Option<Button>,
}

/// Parameters of `desktop.double_click`.
pub type DesktopDoubleClickParams = DesktopClickParams;

/// Parameters of `desktop.move`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DesktopMoveParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// Pixels from the left.
    pub x: i64,
    /// Pixels from the top.
    pub y: i64,
}

/// Parameters of `desktop.scroll`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DesktopScrollParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// Pixels from the left; where the pointer is if not given. Goes with `y`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<i64>,
    /// Pixels from the top; where the pointer is if not given. Goes with `x`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<i64>,
    /// Wheel steps to the right; negative to the left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dx: Option<i32>,
    /// Wheel steps down; negative up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dy: Option<i32>,
}

/// Parameters of `desktop.drag`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DesktopDragParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// Where the button is pressed, `[x, y]`.
    pub from: [i64; 2],
    /// Where it is released, `[x, y]`.
    pub to: [i64; 2],
    /// The button; left if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub button: Option<Button>,
}

/// How text is typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TypeMethod {
    /// Keys up to 100 characters, a paste beyond; a paste too for what no key produces.
    #[default]
    Auto,
    /// One key after the other.
    Keys,
    /// All at once by the clipboard.
    Paste,
}

/// Parameters of `desktop.type`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DesktopTypeParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// What is typed; only its length is stored.
    pub text: Hidden,
    /// How; chosen by the text if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<TypeMethod>,
}

/// Parameters of `desktop.key`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DesktopKeyParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
    /// A key or a chord, such as `Enter` or `ctrl+shift+t`.
    pub keys: String,
}

/// Result of the actions: click, double click, move, scroll, drag, type and key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionResult {
    /// The fencing number under which it was done.
    pub epoch: u64,
    /// A hand-back that the caller has not seen; rides along once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_back: Option<HandBack>,
}

/// Parameters of `desktop.windows`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DesktopWindowsParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
}

/// One window of a desktop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// Its X id.
    pub id: u32,
    /// Its title; written by a program, so not to be trusted.
    pub title: String,
    /// Its process, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Pixels from the left of the desktop.
    pub x: i32,
    /// Pixels from the top of the desktop.
    pub y: i32,
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
    /// Whether keys go to it.
    pub focused: bool,
}

/// Result of `desktop.windows`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DesktopWindowsResult {
    /// The windows, in the order in which they were mapped.
    pub windows: Vec<Window>,
}

/// Parameters of `view.open`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ViewOpenParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
}

/// Result of `view.open`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ViewOpenResult {
    /// The viewer's name, to bind a lease to.
    pub viewer: ViewerName,
    /// A unix socket that speaks RFB without a password; it closes after 60 s unused.
    pub socket_path: String,
}

/// Parameters of `cdp.open`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CdpOpenParams {
    /// The desktop; may be left out if the session has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desktop: Option<DesktopId>,
}

/// Result of `cdp.open`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CdpOpenResult {
    /// A socket that speaks the DevTools protocol to one client, one message a line. Unused for 60
    /// seconds, it goes.
    pub socket_path: String,
}
