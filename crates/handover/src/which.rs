//! "Which desktop?", in the words of whoever has to say it: the host knows of parameters alone.

use handover_protocol::{DesktopId, ErrorCode, Refusal};

/// The refusal of a call that did not say which of several desktops it means, with `how` that is done. Others
/// stay as they are.
pub fn desktop(mut refusal: Refusal, how: impl FnOnce() -> Option<String>) -> Refusal {
    let parameter: Option<String> = refusal.fact("parameter");
    let asked = refusal.code == ErrorCode::BadParams && parameter.as_deref() == Some("desktop");
    let desktops: Option<Vec<DesktopId>> = refusal.fact("desktops").filter(|_| asked);
    if let Some(desktops) = desktops
        && let Some(how) = how()
    {
        let names: Vec<&str> = desktops.iter().map(DesktopId::as_str).collect();
        let names = names.join(", ");
        refusal.message = format!("the session has several desktops, {names}: {how}");
    }
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_question_for_a_desktop_is_put_otherwise() {
        let how = || Some("say so".to_owned());
        let asked = Refusal::bad_param("desktop", "name one as `desktop`");
        let asked = asked.with("desktops", ["d1", "d2"]);
        assert_eq!(
            desktop(asked.clone(), how).message,
            "the session has several desktops, d1, d2: say so"
        );
        assert_eq!(desktop(asked.clone(), || None).message, asked.message);
        for other in [
            Refusal::bad_param("desktop", "too long"),
            Refusal::bad_param("size", "too large").with("desktops", ["d1"]),
            Refusal::new(ErrorCode::DesktopUnknown, "no d7").with("desktops", ["d1"]),
        ] {
            assert_eq!(desktop(other.clone(), how).message, other.message);
        }
    }
}
