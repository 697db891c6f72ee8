//! A person's yes or no in words.

/// Whether an answer allows what a program asks permission for; `None` if it is neither a clear yes nor a
/// clear no.
pub fn decision(answer: &str) -> Option<bool> {
    let word = answer.trim().trim_end_matches(['.', '!']).to_lowercase();
    match word.as_str() {
        "y" | "yes" | "allow" | "ok" | "approve" => Some(true),
        "n" | "no" | "deny" | "refuse" | "reject" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::decision;

    #[test]
    fn only_a_clear_word_decides() {
        for yes in ["yes", " Yes.", "y", "ALLOW", "ok!"] {
            assert_eq!(decision(yes), Some(true), "{yes}");
        }
        for no in ["no", "No!", "n", "deny"] {
            assert_eq!(decision(no), Some(false), "{no}");
        }
        for neither in ["", "yes, but not now", "don't", "maybe"] {
            assert_eq!(decision(neither), None, "{neither}");
        }
    }
}
