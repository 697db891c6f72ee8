//! What a client holds down in a page: the mirror of the presses that it has sent.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::message::{given, read};

/// Most keys and buttons that one session may hold down.
pub(crate) const MAX_HELD: usize = 128;

/// The keys, buttons and touches of one session that were pressed and not let go.
#[derive(Debug, Default)]
pub(crate) struct Pressed {
    /// By method and button: the release.
    buttons: BTreeMap<(&'static str, String), Value>,
    /// By the key's code or name: the release.
    keys: BTreeMap<String, Value>,
    touches: bool,
    /// Where something is dragged.
    drag: Option<(f64, f64)>,
    composing: bool,
}

/// Parameters of the input commands, as far as they say what is held.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Input {
    #[serde(deserialize_with = "given")]
    r#type: String,
    #[serde(deserialize_with = "given")]
    x: f64,
    #[serde(deserialize_with = "given")]
    y: f64,
    #[serde(deserialize_with = "given")]
    button: String,
    #[serde(deserialize_with = "given")]
    pointer_type: Option<String>,
    #[serde(deserialize_with = "given")]
    code: String,
    #[serde(deserialize_with = "given")]
    key: String,
    #[serde(deserialize_with = "given")]
    windows_virtual_key_code: i64,
    #[serde(deserialize_with = "given")]
    native_virtual_key_code: i64,
    #[serde(deserialize_with = "given")]
    location: i64,
    #[serde(deserialize_with = "given")]
    is_keypad: bool,
    #[serde(deserialize_with = "given")]
    touch_points: Vec<Value>,
    #[serde(deserialize_with = "given")]
    text: String,
}

const MOUSE: &str = "Input.dispatchMouseEvent";
const TOUCH_BY_MOUSE: &str = "Input.emulateTouchFromMouseEvent";
const KEY: &str = "Input.dispatchKeyEvent";
const TOUCH: &str = "Input.dispatchTouchEvent";
const DRAG: &str = "Input.dispatchDragEvent";
const COMPOSITION: &str = "Input.imeSetComposition";
/// The commands that press something or let it go.
const NOTED: [&str; 7] = [
    MOUSE,
    TOUCH_BY_MOUSE,
    KEY,
    TOUCH,
    DRAG,
    COMPOSITION,
    "Input.insertText",
];

/// Whether what a command presses or lets go can be read.
pub(crate) fn can_be_noted(method: &str, params: Option<&RawValue>) -> bool {
    !NOTED.contains(&method) || read::<Input>(params).is_some()
}

impl Pressed {
    /// Keeps in mind what the command `method` presses or lets go. False if too much is held already: then
    /// it must not be sent.
    pub(crate) fn note(&mut self, method: &str, params: Option<&RawValue>) -> bool {
        if !NOTED.contains(&method) {
            return true;
        }
        // What cannot be read, the gate does not pass on.
        let Some(input) = read::<Input>(params) else {
            return true;
        };
        match method {
            MOUSE => self.mouse(MOUSE, &input),
            TOUCH_BY_MOUSE => self.mouse(TOUCH_BY_MOUSE, &input),
            KEY => self.key(&input),
            TOUCH => {
                self.touches = input.r#type != "touchCancel" && !input.touch_points.is_empty();
            }
            DRAG => {
                let ends = matches!(input.r#type.as_str(), "drop" | "dragCancel");
                self.drag = (!ends).then_some((input.x, input.y));
            }
            COMPOSITION => self.composing = !input.text.is_empty(),
            // It ends a composition.
            _ => self.composing = false,
        }
        self.buttons.len() + self.keys.len() <= MAX_HELD
    }

    fn mouse(&mut self, method: &'static str, input: &Input) {
        match input.r#type.as_str() {
            "mousePressed" if !matches!(input.button.as_str(), "" | "none") => {
                let mut release = json!({
                    "type": "mouseReleased", "x": input.x, "y": input.y, "button": input.button,
                });
                if let Some(pointer) = &input.pointer_type {
                    release["pointerType"] = pointer.as_str().into();
                }
                self.buttons.insert((method, input.button.clone()), release);
            }
            "mouseReleased" => {
                self.buttons.remove(&(method, input.button.clone()));
            }
            "mouseMoved" => {
                for ((of, _), release) in &mut self.buttons {
                    if *of == method {
                        release["x"] = input.x.into();
                        release["y"] = input.y.into();
                    }
                }
            }
            _ => {}
        }
    }

    fn key(&mut self, input: &Input) {
        let name = [&input.code, &input.key];
        let name = name.into_iter().find(|name| !name.is_empty());
        let number = || input.windows_virtual_key_code.to_string();
        let name = name.cloned().unwrap_or_else(number);
        match input.r#type.as_str() {
            "keyDown" | "rawKeyDown" => {
                let release = json!({
                    "type": "keyUp",
                    "code": input.code,
                    "key": input.key,
                    "windowsVirtualKeyCode": input.windows_virtual_key_code,
                    "nativeVirtualKeyCode": input.native_virtual_key_code,
                    "location": input.location,
                    "isKeypad": input.is_keypad,
                });
                self.keys.insert(name, release);
            }
            "keyUp" => {
                self.keys.remove(&name);
            }
            _ => {}
        }
    }

    /// Whether nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.buttons.is_empty()
            && self.keys.is_empty()
            && !self.touches
            && self.drag.is_none()
            && !self.composing
    }

    /// The commands that let everything go; nothing is held then.
    pub(crate) fn releases(&mut self) -> Vec<(&'static str, Value)> {
        let held = std::mem::take(self);
        let mut releases = Vec::new();
        if let Some((x, y)) = held.drag {
            let data = json!({"items": [], "dragOperationsMask": 0});
            releases.push((
                DRAG,
                json!({"type": "dragCancel", "x": x, "y": y, "data": data}),
            ));
        }
        let buttons = held.buttons.into_iter();
        releases.extend(buttons.map(|((method, _), release)| (method, release)));
        if held.touches {
            releases.push((TOUCH, json!({"type": "touchCancel", "touchPoints": []})));
        }
        releases.extend(held.keys.into_values().map(|release| (KEY, release)));
        if held.composing {
            let nothing = json!({"text": "", "selectionStart": 0, "selectionEnd": 0});
            releases.push((COMPOSITION, nothing));
        }
        releases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(pressed: &mut Pressed, method: &str, params: Value) -> bool {
        let params = serde_json::value::to_raw_value(&params).expect("JSON");
        pressed.note(method, Some(&params))
    }

    #[test]
    fn what_was_pressed_is_let_go_where_it_was_last() {
        let mut pressed = Pressed::default();
        let press = json!({"type": "mousePressed", "x": 1, "y": 2, "button": "left"});
        note(&mut pressed, MOUSE, press);
        note(
            &mut pressed,
            MOUSE,
            json!({"type": "mouseMoved", "x": 5.5, "y": 6}),
        );
        let key = json!({"type": "rawKeyDown", "code": "ShiftLeft", "key": "Shift", "windowsVirtualKeyCode": 16});
        note(&mut pressed, KEY, key);
        note(
            &mut pressed,
            TOUCH,
            json!({"type": "touchStart", "touchPoints": [{"x": 1, "y": 1}]}),
        );
        let releases = pressed.releases();
        assert!(pressed.is_empty());
        let methods: Vec<&str> = releases.iter().map(|(method, _)| *method).collect();
        assert_eq!(methods, [MOUSE, TOUCH, KEY]);
        assert_eq!(
            releases[0].1,
            json!({"type": "mouseReleased", "x": 5.5, "y": 6.0, "button": "left"})
        );
        assert_eq!(releases[2].1["type"], "keyUp");
        assert_eq!(releases[2].1["windowsVirtualKeyCode"], 16);
    }

    #[test]
    fn what_the_client_lets_go_is_not_let_go_again() {
        let mut pressed = Pressed::default();
        for (method, one, other) in [
            (MOUSE, "mousePressed", "mouseReleased"),
            (TOUCH_BY_MOUSE, "mousePressed", "mouseReleased"),
            (KEY, "keyDown", "keyUp"),
        ] {
            for kind in [one, other] {
                let params = json!({"type": kind, "x": 1, "y": 1, "button": "right", "key": "a"});
                note(&mut pressed, method, params);
                assert_eq!(pressed.is_empty(), kind == other, "{method} {kind}");
            }
        }
        note(&mut pressed, COMPOSITION, json!({"text": "ni"}));
        assert!(!pressed.is_empty());
        note(&mut pressed, "Input.insertText", json!({"text": "you"}));
        note(&mut pressed, "Page.navigate", json!({"type": "keyDown"}));
        assert!(pressed.is_empty());
    }

    #[test]
    fn there_is_an_end_to_what_can_be_held() {
        let mut pressed = Pressed::default();
        for key in 0..MAX_HELD {
            assert!(note(
                &mut pressed,
                KEY,
                json!({"type": "keyDown", "key": format!("k{key}")})
            ));
        }
        assert!(!note(
            &mut pressed,
            KEY,
            json!({"type": "keyDown", "key": "more"})
        ));
    }
}
