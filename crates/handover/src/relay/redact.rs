//! Taking secrets out of what a server complains about, and out of notices. What people paste into reports, and
//! what commands agents ask permission for, is often that.
//!
//! Two kinds are known: the values of environment variables whose names say that they are secret, and
//! what looks like a credential wherever it comes from. It is a net with holes, not a promise.

/// What stands in a secret's place.
const INSTEAD: &str = "[redacted]";

/// The shortest value of an environment variable that is looked for: shorter ones are found everywhere.
const SHORTEST: usize = 6;

/// Parts of the names of variables, headers and parameters that hold secrets, in lower case.
const SECRET_NAMES: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "credential",
    "authorization",
];

/// The same for names of environment variables alone: in words, `key` means too much.
const SECRET_VARIABLES: [&str; 4] = ["_key", "cookie", "_pass", "_pat"];

/// What well-known credentials begin with, and how many more letters they have at least.
const BEGINNINGS: [(&str, usize); 14] = [
    ("sk-", 16),
    ("sk_live_", 10),
    ("sk_test_", 10),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("AKIA", 16),
    ("AIza", 30),
    ("npm_", 30),
    ("eyJ", 30),
];

/// Takes secrets out of lines.
#[derive(Clone, Debug)]
pub(crate) struct Redactor {
    values: Vec<String>,
}

impl Redactor {
    /// One that knows the secrets among these variables.
    pub(crate) fn new(environment: impl IntoIterator<Item = (String, String)>) -> Self {
        let secret = |name: &str| {
            let name = name.to_lowercase();
            let mut parts = SECRET_NAMES.iter().chain(&SECRET_VARIABLES);
            parts.any(|part| name.contains(part))
        };
        let values = environment.into_iter();
        let values = values.filter(|(name, value)| value.len() >= SHORTEST && secret(name));
        let mut values: Vec<String> = values.map(|(_, value)| value).collect();
        // One that is part of another must not spoil it.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self { values }
    }

    /// The line without what is secret in it.
    pub(crate) fn clean(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for value in &self.values {
            if line.contains(value.as_str()) {
                line = line.replace(value.as_str(), INSTEAD);
            }
        }
        shapes(&line)
    }
}

/// What belongs to a credential, and so to the word that is looked at.
fn is_part(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '+' | '/' | '~')
}

/// Replaces what looks like a credential.
fn shapes(line: &str) -> String {
    let mut clean = String::with_capacity(line.len());
    let mut rest = line;
    while !rest.is_empty() {
        let word = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        if word == 0 {
            let letter = rest.chars().next().map_or(1, char::len_utf8);
            clean.push_str(&rest[..letter]);
            rest = &rest[letter..];
            continue;
        }
        let before = clean.as_str();
        if looks_secret(&rest[..word]) || is_user_of_address(before, &rest[word..]) {
            clean.push_str(INSTEAD);
            rest = &rest[word..];
        } else if let Some(value) = after_secret_name(before) {
            // Up to the end of the value, whatever it is made of.
            let end = match value {
                Value::Quoted(quote) => rest.find(quote).unwrap_or(rest.len()),
                Value::Bare => rest
                    .find(|letter: char| {
                        letter.is_whitespace()
                            || matches!(letter, ',' | ';' | '&' | '"' | '\'' | '}' | ')')
                    })
                    .unwrap_or(rest.len()),
            };
            let scheme = &rest[..word];
            if ["bearer", "basic", "digest", "token"].contains(&&*scheme.to_lowercase())
                && end == word
            {
                clean.push_str(scheme);
            } else {
                clean.push_str(INSTEAD);
            }
            rest = &rest[end..];
        } else {
            clean.push_str(&rest[..word]);
            rest = &rest[word..];
        }
    }
    clean
}

fn looks_secret(word: &str) -> bool {
    BEGINNINGS.iter().any(|(beginning, more)| {
        word.strip_prefix(beginning)
            .is_some_and(|rest| rest.len() >= *more && rest.chars().all(is_part))
    })
}

/// `user:` before, and `@` behind, in the address of something.
fn is_user_of_address(before: &str, behind: &str) -> bool {
    let in_address = before.rfind("//").is_some_and(|at| {
        let user = &before[at + 2..];
        user.ends_with(':') && user.len() > 1 && !user.contains([' ', '/'])
    });
    in_address && behind.starts_with('@')
}

enum Value {
    Quoted(char),
    Bare,
}

/// Whether what comes next is the value of something with a secret's name: `name=`, `"name": "`,
/// `Bearer `.
fn after_secret_name(before: &str) -> Option<Value> {
    let (mut text, value) = match before.chars().next_back()? {
        quote @ ('"' | '\'') => (&before[..before.len() - 1], Value::Quoted(quote)),
        _ => (before, Value::Bare),
    };
    let spaced = text.len();
    text = text.trim_end_matches(' ');
    for scheme in ["bearer", "basic"] {
        let at = text.len().checked_sub(scheme.len());
        let ends = at.and_then(|at| text.get(at..));
        if text.len() < spaced && ends.is_some_and(|ends| ends.eq_ignore_ascii_case(scheme)) {
            return Some(value);
        }
    }
    text = text.strip_suffix([':', '='])?;
    text = text.trim_end_matches([' ', '"', '\'']);
    let name = text.rfind(|letter| !is_part(letter)).map_or(0, |at| {
        at + text[at..].chars().next().map_or(1, char::len_utf8)
    });
    let name = text[name..].to_lowercase();
    SECRET_NAMES
        .iter()
        .any(|part| name.contains(part))
        .then_some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clean(line: &str) -> String {
        let variables = [
            ("SERVICE_TOKEN", "hunter2-hunter2"),
            ("MY_API_KEY", "abc.def"),
            ("DB_PASS", "tiny"),
            ("HOME", "/home/ada"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Redactor::new(variables).clean(line)
    }

    #[test]
    fn secrets_go() {
        for (line, left) in [
            ("got hunter2-hunter2!", "got [redacted]!"),
            ("xabc.defx", "x[redacted]x"),
            (
                "Authorization: Bearer abcdef",
                "Authorization: Bearer [redacted]",
            ),
            (
                "authorization: Basic QWxhZGRpbg==",
                "authorization: Basic [redacted]",
            ),
            (
                r#"{"apiKey": "a b,c", "x": 1}"#,
                r#"{"apiKey": "[redacted]", "x": 1}"#,
            ),
            (
                "GET /?access_token=abc&x=1",
                "GET /?access_token=[redacted]&x=1",
            ),
            ("password = p@ss!w0rd next", "password = [redacted] next"),
            ("key sk-0123456789abcdef0123.", "key [redacted]"),
            ("pg://ada:s3cret@host/db", "pg://ada:[redacted]@host/db"),
        ] {
            assert_eq!(clean(line), left);
        }
    }

    #[test]
    fn other_words_stay() {
        for line in [
            "listening on http://localhost:8080/mcp in /home/ada",
            "tiny tokens: none",
            "sk-short",
            "Größe = 5; the token was refused",
            "",
        ] {
            let left = clean(line);
            assert!(line == left || line.starts_with("tiny tokens"), "{left}");
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_cleaned(line in r#"([a-z]{0,4}|[:="'@/ é]|token|Bearer |sk-){0,30}"#) {
            let cleaned = clean(&line);
            prop_assert!(cleaned.len() <= line.len() * 11 + 11);
        }
    }
}
