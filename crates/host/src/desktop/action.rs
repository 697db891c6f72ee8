//! Agents' actions: from the parameters of a call to a script.

use handover_protocol::{
    DesktopClickParams, DesktopDragParams, DesktopKeyParams, DesktopMoveParams,
    DesktopScrollParams, DesktopTypeParams, ErrorCode, Refusal, TypeMethod,
};
use handover_rfb::keys::{Keysym, parse_chord};
use handover_rfb::typing::{self, Method, TypingError, TypingPlan};
use serde_json::{Map, Value, json};

use super::script::{self, Point, Step};

/// The longest text that is typed at once, in characters.
pub const MAX_TEXT_CHARS: usize = 100_000;

/// The most wheel steps in one call, either way.
const MAX_SCROLL: i32 = 200;

/// One action of an agent, ready to be run.
#[derive(Debug)]
pub struct Action {
    /// The kind of event that it is recorded as.
    pub kind: &'static str,
    /// What it sends.
    pub steps: Vec<Step>,
    /// True if it aims at something by coordinates.
    pub aims: bool,
    /// True if it goes wherever the keyboard's focus is.
    pub types: bool,
    /// Characters in all, of a text.
    pub chars: Option<usize>,
    /// What the record says of it.
    pub fields: Map<String, Value>,
}

impl Action {
    /// True if it may move the keyboard's focus.
    pub fn clicks(&self) -> bool {
        matches!(
            self.kind,
            "desktop_click" | "desktop_double_click" | "desktop_drag"
        )
    }
}

/// The size of a framebuffer in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// From left to right.
    pub width: u16,
    /// From top to bottom.
    pub height: u16,
}

impl Bounds {
    /// The point, if it is on the desktop.
    fn point(self, x: i64, y: i64) -> Result<Point, Refusal> {
        let inside = |value: i64, limit: u16| u16::try_from(value).ok().filter(|&v| v < limit);
        match (inside(x, self.width), inside(y, self.height)) {
            (Some(x), Some(y)) => Ok((x, y)),
            _ => Err(Refusal::new(
                ErrorCode::OutOfBounds,
                format!(
                    "the point {x},{y} is outside the desktop, which is {}x{} pixels; x goes from 0 to {}, y from 0 to {}",
                    self.width,
                    self.height,
                    self.width.saturating_sub(1),
                    self.height.saturating_sub(1),
                ),
            )
            .with("width", self.width)
            .with("height", self.height)),
        }
    }
}

/// The members of an object.
pub fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn aimed(kind: &'static str, steps: Vec<Step>, said: Value) -> Action {
    Action {
        kind,
        steps,
        aims: true,
        types: false,
        chars: None,
        fields: fields(said),
    }
}

/// `desktop.move`.
///
/// # Errors
/// `out_of_bounds`.
pub fn move_to(params: &DesktopMoveParams, bounds: Bounds) -> Result<Action, Refusal> {
    let at = bounds.point(params.x, params.y)?;
    let said = json!({"x": at.0, "y": at.1});
    Ok(aimed("desktop_move", script::move_to(at), said))
}

/// `desktop.click` and, with two `times`, `desktop.double_click`.
///
/// # Errors
/// `out_of_bounds`.
pub fn click(params: &DesktopClickParams, times: usize, bounds: Bounds) -> Result<Action, Refusal> {
    let at = bounds.point(params.x, params.y)?;
    let button = params.button.unwrap_or_default();
    let kind = if times == 1 {
        "desktop_click"
    } else {
        "desktop_double_click"
    };
    let said = json!({"x": at.0, "y": at.1, "button": button.number()});
    Ok(aimed(kind, script::click(at, button, times), said))
}

/// `desktop.scroll`; `pointer` is where the pointer is.
///
/// # Errors
/// `out_of_bounds`, or `bad_params` if only one coordinate is given, nothing is
/// scrolled, or too much.
pub fn scroll(
    params: &DesktopScrollParams,
    pointer: Point,
    bounds: Bounds,
) -> Result<Action, Refusal> {
    let at = match (params.x, params.y) {
        (Some(x), Some(y)) => bounds.point(x, y)?,
        (None, None) => pointer,
        _ => {
            return Err(Refusal::bad_param(
                "x",
                "`x` and `y` go together; give both, or neither to scroll where the pointer is",
            ));
        }
    };
    let (dx, dy) = (params.dx.unwrap_or(0), params.dy.unwrap_or(0));
    if (dx, dy) == (0, 0) {
        return Err(Refusal::bad_param(
            "dy",
            "nothing to scroll; give `dy` (positive is down) or `dx` (positive is right) in wheel steps",
        ));
    }
    if dx.unsigned_abs().max(dy.unsigned_abs()) > MAX_SCROLL.unsigned_abs() {
        return Err(Refusal::bad_param(
            "dx",
            format!("`dx` and `dy` are at most {MAX_SCROLL} wheel steps a call"),
        ));
    }
    let said = json!({"x": at.0, "y": at.1, "dx": dx, "dy": dy});
    let mut action = aimed("desktop_scroll", script::scroll(at, dx, dy), said);
    action.aims = params.x.is_some();
    Ok(action)
}

/// `desktop.drag`.
///
/// # Errors
/// `out_of_bounds`.
pub fn drag(params: &DesktopDragParams, bounds: Bounds) -> Result<Action, Refusal> {
    let from = bounds.point(params.from[0], params.from[1])?;
    let to = bounds.point(params.to[0], params.to[1])?;
    let button = params.button.unwrap_or_default();
    let said = json!({
        "x": from.0, "y": from.1, "toX": to.0, "toY": to.1, "button": button.number(),
    });
    Ok(aimed("desktop_drag", script::drag(from, to, button), said))
}

fn keyed(kind: &'static str, steps: Vec<Step>) -> Action {
    Action {
        kind,
        steps,
        aims: false,
        types: true,
        chars: None,
        fields: Map::new(),
    }
}

/// The keys of `desktop.key`.
///
/// # Errors
/// `unknown_key`, which names it.
pub fn chord(params: &DesktopKeyParams) -> Result<Vec<Keysym>, Refusal> {
    parse_chord(&params.keys)
        .map_err(|unknown| Refusal::new(ErrorCode::UnknownKey, unknown.to_string()))
}

/// `desktop.key`; `lacks` is the first of its keys that the display's keyboard
/// neither has nor can be given.
///
/// # Errors
/// `unknown_key`, which names it.
pub fn key(params: &DesktopKeyParams, lacks: Option<Keysym>) -> Result<Action, Refusal> {
    let keys = chord(params)?;
    if let Some(Keysym(keysym)) = lacks {
        return Err(Refusal::new(
            ErrorCode::UnknownKey,
            format!(
                "the desktop's keyboard has no key {keysym:#06x} of \"{}\" and no room for another; type characters with `desktop.type`",
                params.keys
            ),
        ));
    }
    let mut action = keyed("desktop_key", script::chord(&keys));
    action
        .fields
        .insert("keys".into(), params.keys.as_str().into());
    Ok(action)
}

/// `desktop.type`; `lacks` is the first character that the display's keyboard
/// has no key for.
///
/// # Errors
/// `text_untypable`, which names the character by its place and code point, or
/// `bad_params` for a text that is empty or too long.
pub fn type_text(params: &DesktopTypeParams, lacks: Option<Lacking>) -> Result<Action, Refusal> {
    let (text, chars) = (params.text.expose(), params.text.chars());
    if chars == 0 {
        return Err(Refusal::bad_param(
            "text",
            "`text` is empty; give the text to type",
        ));
    }
    if chars > MAX_TEXT_CHARS {
        return Err(Refusal::bad_param(
            "text",
            format!("`text` is over {MAX_TEXT_CHARS} characters; type it in parts"),
        ));
    }
    let method = match (params.method.unwrap_or_default(), lacks) {
        (TypeMethod::Auto, None) => Method::Auto,
        (TypeMethod::Auto | TypeMethod::Paste, _) => Method::Paste,
        (TypeMethod::Keys, None) => Method::Keys,
        (TypeMethod::Keys, Some(Lacking { index, character })) => {
            let why = "the desktop's keyboard has no key for it; leave `method` out to paste it";
            return Err(untypable(index, character, why));
        }
    };
    let plan = typing::plan(text, method).map_err(|error| match error {
        TypingError::Untypable { index, character } => {
            let why = "no key and no paste gives it; send control keys with `desktop.key`";
            untypable(index, character, why)
        }
        TypingError::TooLong { .. } => Refusal::bad_param("text", error.to_string()),
    })?;
    let steps = match plan {
        TypingPlan::Keys(strokes) => script::keys(&strokes),
        TypingPlan::Paste(text) => script::paste(text),
    };
    let mut action = keyed("desktop_type", steps);
    action.chars = Some(chars);
    action.fields.insert("chars".into(), chars.into());
    Ok(action)
}

/// A character that a keyboard has no key for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lacking {
    /// Its place in the text, from 0.
    pub index: usize,
    /// The character.
    pub character: char,
}

fn untypable(index: usize, character: char, why: &str) -> Refusal {
    let code_point = format!("U+{:04X}", u32::from(character));
    Refusal::new(
        ErrorCode::TextUntypable,
        format!(
            "character {} ({code_point}) cannot be typed: {why}",
            index + 1
        ),
    )
    .with("index", index)
    .with("codePoint", code_point)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        width: 1280,
        height: 800,
    };

    fn text(text: &str, method: Option<TypeMethod>) -> DesktopTypeParams {
        DesktopTypeParams {
            desktop: None,
            text: text.into(),
            method,
        }
    }

    #[test]
    fn a_point_outside_names_the_size() {
        let params = DesktopMoveParams {
            desktop: None,
            x: 1280,
            y: 0,
        };
        let refusal = move_to(&params, BOUNDS).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::OutOfBounds);
        assert!(refusal.message.contains("1280x800"), "{refusal}");
        assert_eq!(refusal.fact::<u32>("width"), Some(1280));
    }

    #[test]
    fn long_and_foreign_texts_are_pasted_short_ones_typed() {
        let pasted = |text: &str, method, lacks| {
            let action = type_text(&self::text(text, method), lacks).unwrap();
            matches!(action.steps[0], Step::Paste(_))
        };
        let lacks = Some(Lacking {
            index: 0,
            character: 'q',
        });
        assert!(!pasted("abc\n", None, None));
        assert!(pasted("é", None, None));
        assert!(pasted("q", None, lacks));
        let long = "x".repeat(101);
        assert!(pasted(&long, None, None));
        assert!(!pasted(&long, Some(TypeMethod::Keys), None));
        assert!(type_text(&text("q", Some(TypeMethod::Keys)), lacks).is_err());
    }

    #[test]
    fn what_cannot_be_typed_is_named_without_the_text() {
        let refusal = type_text(&text("pass\u{7}word", None), None).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::TextUntypable);
        assert!(
            refusal.message.contains("character 5 (U+0007)"),
            "{refusal}"
        );
        assert!(!refusal.message.contains("pass"));
    }

    #[test]
    fn scrolling_needs_a_direction_and_a_bound() {
        let mut params = DesktopScrollParams::default();
        assert!(scroll(&params, (0, 0), BOUNDS).is_err());
        params.dy = Some(i32::MIN);
        assert!(scroll(&params, (0, 0), BOUNDS).is_err());
        for (steps, fits) in [
            (3, true),
            (-200, true),
            (200, true),
            (-201, false),
            (201, false),
        ] {
            params.dy = Some(steps);
            assert_eq!(scroll(&params, (0, 0), BOUNDS).is_ok(), fits, "{steps}");
        }
    }

    /// In characters, not bytes.
    #[test]
    fn a_text_has_a_bound() {
        let typed = |chars: usize| type_text(&text(&"漢".repeat(chars), None), None);
        assert_eq!(typed(MAX_TEXT_CHARS).unwrap().chars, Some(MAX_TEXT_CHARS));
        for chars in [0, MAX_TEXT_CHARS + 1] {
            assert_eq!(typed(chars).unwrap_err().code, ErrorCode::BadParams);
        }
    }
}
