//! Which questions an agent may put to a person in text.
//!
//! An answer in text passes through the agent's context and the session's record, so a question
//! for a secret is refused before anybody can answer it: the person types a secret themselves, in
//! a takeover, where neither the agent nor the record sees it. The check errs on the side of a
//! takeover; a handful of everyday compounds ("source code", "arrow key") are let through so that
//! ordinary questions are not turned away.

/// Words that name a secret whatever stands around them.
const SECRETS: &[&str] = &[
    "passwd",
    "pwd",
    "pw",
    "pin",
    "pins",
    "otp",
    "otps",
    "totp",
    "2fa",
    "mfa",
    "puk",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "creds",
    "token",
    "tokens",
    "cvv",
    "cvc",
    "cvv2",
    "cvc2",
    "ssn",
    "mnemonic",
    "clave",
    "claves",
    "senha",
    "senhas",
    "geheimnis",
    "passord",
    "heslo",
    "parola",
    "пин",
    "код",
    "ключ",
];

/// Fragments that name a secret even inside a longer word, or with its letters spread out.
const SECRET_FRAGMENTS: &[&str] = &[
    "password",
    "passphrase",
    "passcode",
    "passkey",
    "passwort",
    "kennwort",
    "losungswort",
    "motdepasse",
    "contrasena",
    "contraseña",
    "palavrapasse",
    "wachtwoord",
    "lösenord",
    "losenord",
    "adgangskode",
    "salasana",
    "hasło",
    "şifre",
    "пароль",
    "密码",
    "密碼",
    "口令",
    "验证码",
    "驗證碼",
    "パスワード",
    "暗証番号",
    "認証コード",
    "비밀번호",
    "인증번호",
    "seedphrase",
    "recoveryphrase",
    "cardnumber",
    "creditcard",
    "debitcard",
    "socialsecurity",
    "apikey",
    "privatekey",
    "onetimecode",
    "logindetails",
    "logindata",
    "zugangsdaten",
];

/// Words that name a secret unless their neighbour makes them something ordinary.
const AMBIGUOUS: &[Ambiguous] = &[
    Ambiguous {
        words: &["code", "codes", "kode", "codigo", "código"],
        after: &[
            "source",
            "error",
            "exit",
            "status",
            "return",
            "response",
            "http",
            "country",
            "zip",
            "postal",
            "post",
            "area",
            "colour",
            "color",
            "dead",
            "example",
            "sample",
            "machine",
            "your",
            "generated",
            "language",
            "currency",
            "python",
            "rust",
            "test",
            "html",
            "css",
        ],
        before: &[
            "editor",
            "review",
            "style",
            "base",
            "block",
            "blocks",
            "path",
            "change",
            "changes",
            "owner",
            "comment",
            "comments",
            "formatter",
            "folder",
            "file",
            "files",
            "repository",
        ],
        // "your code" is a program in "may I change your code", a secret in "what is your code".
        needs_both: &["your"],
    },
    Ambiguous {
        words: &["key", "keys", "schlüssel"],
        after: &[
            "arrow",
            "enter",
            "return",
            "escape",
            "esc",
            "shift",
            "control",
            "ctrl",
            "alt",
            "tab",
            "function",
            "delete",
            "backspace",
            "space",
            "hot",
            "shortcut",
            "primary",
            "foreign",
            "sort",
            "which",
            "press",
        ],
        before: &[
            "press",
            "presses",
            "binding",
            "bindings",
            "combination",
            "combinations",
            "point",
            "points",
            "board",
            "stroke",
            "strokes",
            "shortcut",
            "shortcuts",
            "feature",
            "features",
            "signature",
            "column",
        ],
        needs_both: &["which"],
    },
];

/// One family of words whose meaning hangs on the word before or after.
struct Ambiguous {
    words: &'static [&'static str],
    /// Ordinary when one of these stands directly before the word.
    after: &'static [&'static str],
    /// Ordinary when one of these stands directly after the word.
    before: &'static [&'static str],
    /// Of `after`, those that settle nothing unless a word of `before` follows too.
    needs_both: &'static [&'static str],
}

/// Whether `question` looks like a request for something that must not be answered in text: a
/// password, a code, a key, a token, a card number.
///
/// ```
/// use handover_protocol::question::asks_for_secret;
/// assert!(asks_for_secret("What is the 6-digit code?"));
/// assert!(!asks_for_secret("Shall I book the 9:40 or the 11:15 train?"));
/// ```
pub fn asks_for_secret(question: &str) -> bool {
    let words = words(question);
    let squeezed: String = words.concat();
    if SECRET_FRAGMENTS.iter().any(|f| squeezed.contains(f)) {
        return true;
    }
    words.iter().enumerate().any(|(at, word)| {
        let word = word.as_str();
        if SECRETS.contains(&word) {
            return true;
        }
        AMBIGUOUS
            .iter()
            .filter(|family| family.words.contains(&word))
            .any(|family| {
                let previous = at.checked_sub(1).and_then(|i| words.get(i));
                !family.is_ordinary(previous, words.get(at + 1))
            })
    })
}

impl Ambiguous {
    fn is_ordinary(&self, previous: Option<&String>, next: Option<&String>) -> bool {
        let follows = next.is_some_and(|w| self.before.contains(&w.as_str()));
        let precedes = previous.is_some_and(|w| {
            self.after.contains(&w.as_str()) && !self.needs_both.contains(&w.as_str())
        });
        follows || precedes
    }
}

/// The words of a text in lower case: split at anything that is no letter or digit, and where a
/// lower-case letter meets an upper-case one ("apiKey"). Look-alikes are folded back to letters
/// inside a word ("p@ssw0rd").
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous = ' ';
    for c in text.chars() {
        let letter = match c {
            '@' => Some('a'),
            '$' => Some('s'),
            '0' if previous.is_alphabetic() => Some('o'),
            c if c.is_alphanumeric() => Some(c),
            _ => None,
        };
        let boundary = letter.is_none() || (previous.is_lowercase() && c.is_uppercase());
        if boundary && words.last().is_some_and(|w| !w.is_empty()) {
            words.push(String::new());
        }
        if let (Some(letter), Some(word)) = (letter, words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
        previous = c;
    }
    words.retain(|w| !w.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::asks_for_secret;

    #[test]
    fn requests_for_secrets_are_recognised() {
        for question in [
            "What is the password?",
            "Please enter your PASSWORD",
            "password for alice@example.org?",
            "p a s s w o r d please",
            "p@ssw0rd?",
            "pass-word?",
            "Which passphrase unlocks the key ring?",
            "Please tell me the 6-digit code from your phone",
            "What is your code?",
            "The site sent a verification code. What is it?",
            "Send me the API key",
            "apiKey?",
            "Which key should I use to log in to the server?",
            "What's the PIN?",
            "OTP?",
            "Enter the 2FA",
            "what is the secret",
            "Give me the access token",
            "card number and CVV?",
            "Wie lautet das Passwort?",
            "Quel est le mot de passe ?",
            "¿Cuál es la contraseña?",
            "密码是什么?",
            "Какой пароль?",
        ] {
            assert!(asks_for_secret(question), "let through: {question}");
        }
    }

    #[test]
    fn ordinary_questions_pass() {
        for question in [
            "",
            "Shall I book the 9:40 or the 11:15 train?",
            "Which of the two invoices is the right one?",
            "May I delete the old branch?",
            "Which source code folder is the right one?",
            "The program ended with exit code 2. Shall I go on?",
            "May I change your code style settings?",
            "Does the arrow key work for you?",
            "Which key binding do you prefer?",
            "What are the key points of the report?",
            "Use the keyboard or the mouse?",
            "Is a passenger missing on the list?",
            "Which country code applies?",
            "Opinion?",
            "Shall I take the slow train?",
            "Should the failing test pass first?",
        ] {
            assert!(!asks_for_secret(question), "refused: {question}");
        }
    }
}
