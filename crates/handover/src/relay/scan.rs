//! Walking through JSON without building anything: whether it is JSON, and where some members of an object are.
//!
//! Everything that passes is looked at once, a megabyte of text in a string in blocks. Nothing here recurses, so depth
//! costs a byte a level and no stack.

/// The longest name, as written, that could be one of those looked for: every letter of the longest as `\u0000`.
const LONGEST_NAME: usize = 128;

/// Bytes of a string that are looked at together.
const BLOCK: usize = 64;

/// Why a text is not JSON, or not what it has to be. The text itself is never in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault(String);

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Members of an object, each as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Members<'a, const N: usize> {
    /// In the order of the names asked for.
    pub(super) found: [Option<&'a str>; N],
    /// Why two readers could understand the object differently: a member that is there twice, or in other capitals.
    pub(super) unclear: Option<Fault>,
}

impl<'a, const N: usize> Members<'a, N> {
    /// The members, if they are clear.
    pub(super) fn clear(self) -> Result<[Option<&'a str>; N], Fault> {
        match self.unclear {
            None => Ok(self.found),
            Some(fault) => Err(fault),
        }
    }
}

/// The members of these names in the object that `text` is.
///
/// # Errors
/// If it is no object, or not clear.
pub(super) fn members<'a, const N: usize>(
    text: &'a str,
    names: &[&str; N],
) -> Result<[Option<&'a str>; N], Fault> {
    let mut cursor = Cursor::new(text);
    let members = cursor.members(names, |cursor, _| cursor.value())?;
    cursor.end()?;
    members.clear()
}

/// The elements of the array that `text` is, up to `most`.
///
/// # Errors
/// If it is none, or has more.
pub(super) fn elements(text: &str, most: usize) -> Result<Vec<&str>, Fault> {
    let mut cursor = Cursor::new(text);
    let mut elements = Vec::new();
    cursor.expect(b'[', "an array")?;
    if !cursor.takes(b']') {
        loop {
            if elements.len() == most {
                return Err(Fault(format!("there are more than {most} elements")));
            }
            elements.push(cursor.value()?);
            if cursor.takes(b']') {
                break;
            }
            cursor.expect(b',', "`,` or `]`")?;
        }
    }
    cursor.end()?;
    Ok(elements)
}

/// A place in a text.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The beginning of a text.
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Checks that nothing but white space follows.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        self.blanks();
        if self.at == self.text.len() {
            Ok(())
        } else {
            Err(self.fault("the end"))
        }
    }

    /// Does something that passes a value, and gives that value too as it is written.
    pub(super) fn passed<T>(
        &mut self,
        pass: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<(&'a str, T), Fault> {
        self.blanks();
        let start = self.at;
        let passed = pass(self)?;
        Ok((&self.text[start..self.at], passed))
    }

    /// Whether an object begins here.
    pub(super) fn is_at_object(&mut self) -> bool {
        self.blanks();
        self.peek() == Some(b'{')
    }

    /// Passes an object and finds the members of these names. `value` has to pass the value of each, and is given the
    /// place of its name.
    pub(super) fn members<const N: usize>(
        &mut self,
        names: &[&str; N],
        mut value: impl FnMut(&mut Self, usize) -> Result<&'a str, Fault>,
    ) -> Result<Members<'a, N>, Fault> {
        let mut found = [None; N];
        let mut unclear = None;
        self.expect(b'{', "an object")?;
        if self.takes(b'}') {
            return Ok(Members { found, unclear });
        }
        loop {
            let name = self.name()?;
            let decoded = decode(name).map_err(|()| self.fault("a name in Unicode"))?;
            let known = decoded.and_then(|name| {
                let index = names.iter().position(|known| resembles(&name, known))?;
                Some((index, name == names[index]))
            });
            if let Some((index, exact)) = known {
                if !exact {
                    let fault = format!("`{}` is written in other letters", names[index]);
                    unclear.get_or_insert(Fault(fault));
                }
                if found[index].replace(value(self, index)?).is_some() {
                    let fault = format!("`{}` is there twice", names[index]);
                    unclear.get_or_insert(Fault(fault));
                }
            } else {
                self.value()?;
            }
            if self.takes(b'}') {
                return Ok(Members { found, unclear });
            }
            self.expect(b',', "`,` or `}`")?;
        }
    }

    /// Passes one value of any kind, which is given as it is written.
    pub(super) fn value(&mut self) -> Result<&'a str, Fault> {
        self.blanks();
        let start = self.at;
        // What closes each array and object that is open.
        let mut open = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                Some(b'"') => drop(self.string()?),
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.word("true")?,
                Some(b'f') => self.word("false")?,
                Some(b'n') => self.word("null")?,
                Some(b'[') => {
                    self.at += 1;
                    if !self.takes(b']') {
                        open.push(b']');
                        continue;
                    }
                }
                Some(b'{') => {
                    self.at += 1;
                    if !self.takes(b'}') {
                        self.name()?;
                        open.push(b'}');
                        continue;
                    }
                }
                _ => return Err(self.fault("a value")),
            }
            loop {
                let Some(&closing) = open.last() else {
                    return Ok(&self.text[start..self.at]);
                };
                if self.takes(closing) {
                    open.pop();
                    continue;
                }
                self.expect(b',', "`,` or the end of an array or object")?;
                if closing == b'}' {
                    self.name()?;
                }
                break;
            }
        }
    }

    fn fault(&self, expected: &str) -> Fault {
        Fault(format!("at byte {}: {expected} was expected", self.at))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Passes `byte` and the white space before it, if that is what follows.
    fn takes(&mut self, byte: u8) -> bool {
        self.blanks();
        let is = self.peek() == Some(byte);
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result<(), Fault> {
        if self.takes(byte) {
            Ok(())
        } else {
            Err(self.fault(what))
        }
    }

    /// Passes the name of a member and its colon.
    fn name(&mut self) -> Result<&'a str, Fault> {
        self.blanks();
        if self.peek() != Some(b'"') {
            return Err(self.fault("a name"));
        }
        let name = self.string()?;
        self.expect(b':', "`:`")?;
        Ok(name)
    }

    /// Passes a string, which is given with its quotes.
    fn string(&mut self) -> Result<&'a str, Fault> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        self.at += 1;
        loop {
            self.at = plain(bytes, self.at);
            match bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(&self.text[start..self.at]);
                }
                Some(b'\\') => match bytes.get(self.at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
                    Some(b'u') => {
                        let digits = bytes.get(self.at + 2..self.at + 6);
                        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                            return Err(self.fault("four digits behind `\\u`"));
                        }
                        self.at += 6;
                    }
                    _ => return Err(self.fault("an escape")),
                },
                Some(_) => return Err(self.fault("no control character in a string")),
                None => return Err(self.fault("the end of a string")),
            }
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.fault("a digit"));
        }
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), Fault> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.fault("a value"));
        }
        self.at += word.len();
        Ok(())
    }
}

/// Where in a string, from `at` on, something stands that is more than itself, or may not be there.
fn plain(bytes: &[u8], mut at: usize) -> usize {
    let special = |byte: u8| byte == b'"' || byte == b'\\' || byte < b' ';
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
        // Without a way out of the middle it is done for many bytes at once.
        let found = block
            .iter()
            .fold(false, |found, &byte| found | special(byte));
        if found {
            break;
        }
        at += BLOCK;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let found = rest.iter().position(|&byte| special(byte));
    found.map_or(bytes.len(), |found| at + found)
}

/// How a null character is written.
const NULL: &str = "\\u0000";

/// What a name in quotes says, unless it is too long to be of interest.
fn decode(name: &str) -> Result<Option<std::borrow::Cow<'_, str>>, ()> {
    let inner = &name[1..name.len() - 1];
    if inner.len() > LONGEST_NAME && !inner.contains(NULL) {
        return Ok(None);
    }
    if !inner.contains('\\') {
        return Ok(Some(inner.into()));
    }
    let decoded: String = serde_json::from_str(name).map_err(drop)?;
    Ok(Some(decoded.into()))
}

/// Whether a reader that does not look at case, or takes a null character for the end, takes `name` for `known`,
/// which is in ASCII.
fn resembles(name: &str, known: &str) -> bool {
    let (name, _) = name.split_once('\0').unwrap_or((name, ""));
    let folded = name.chars().map(|letter| match letter {
        'ſ' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    });
    folded.eq(known.chars().map(|letter| letter.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    /// As another reader has it.
    fn is_json(text: &str) -> bool {
        serde_json::from_str::<&RawValue>(text).is_ok()
    }

    fn passes(text: &str) -> bool {
        let mut cursor = Cursor::new(text);
        cursor.value().is_ok() && cursor.end().is_ok()
    }

    /// JSON, and what is nearly JSON.
    fn texts() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            "[\\[\\]{}:,\" \t\r]",
            "(true|false|null|nul|-|0|01|1|12|1.|1.5|-0.0|1e|1e5|1E+07|.5|\\+1|NaN)",
            "\"[a-zé\\\\/\"ubn0-9\t]{0,6}\"",
            Just(format!("\"{}\"", "long ".repeat(40))),
            Just("\"\\ud83d\\ude00\\ud800\"".to_owned()),
            Just("{\"a\":[1,{\"b\":\"c\"}],\"d\":{}}".to_owned()),
            Just("\"a\":".to_owned()),
        ];
        vec(part, 0..14).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn it_takes_for_json_what_is_json(text in texts()) {
            prop_assert_eq!(passes(&text), is_json(&text), "{}", text);
        }

        #[test]
        fn members_are_found_as_another_reader_finds_them(
            names in vec("(id|ID|i\\\\u0064|id\\\\u0000x|method|x|\\\\ud800|ı)", 0..5),
            value in "(1|\"a\"|\\{\"id\":2\\}|\\[\\])",
        ) {
            let inner: Vec<String> = names.iter().map(|name| format!("\"{name}\":{value}")).collect();
            let text = format!(" {{{}}} ", inner.join(" , "));
            let exact = names.iter().filter(|name| ["id", "i\\u0064"].contains(&&***name)).count();
            let alike = ["ID", "id\\u0000x"];
            let alike = names.iter().filter(|name| alike.contains(&&***name)).count();
            match members(&text, &["id"]) {
                Ok([found]) => {
                    prop_assert!(exact <= 1 && alike == 0);
                    prop_assert_eq!(found.is_some(), exact == 1);
                    prop_assert!(found.is_none_or(|found| found == value));
                }
                Err(_) => prop_assert!(
                    exact > 1 || alike > 0 || names.iter().any(|name| name == "\\ud800")
                ),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn whole_values_pass_as_they_are(value in "[ -~é]{0,80}", deep in 0usize..20) {
            let value = serde_json::json!({"x": [value, {"y": value, value.clone(): 1.5e-3}]});
            let text = format!("{}{value}{}", "[".repeat(deep), "]".repeat(deep));
            let mut cursor = Cursor::new(&text);
            prop_assert_eq!(cursor.value(), Ok(&*text));
            prop_assert_eq!(cursor.end(), Ok(()));
            // And no part of it.
            for end in 0..text.len() {
                if let Some(part) = text.get(..end) {
                    prop_assert!(!passes(part), "{}", part);
                }
            }
        }
    }

    #[test]
    fn depth_and_length_cost_no_stack() {
        let deep = format!("{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
        assert!(passes(&deep));
        assert!(!passes(&deep[1..]));
        let long = format!("\"{}\"", "é\\n".repeat(1 << 20));
        assert!(passes(&long));
    }

    #[test]
    fn elements_of_an_array() {
        assert_eq!(elements(" [ 1,{\"a\":2} ] ", 2), Ok(vec!["1", "{\"a\":2}"]));
        assert_eq!(elements("[]", 0), Ok(vec![]));
        assert!(elements("[1,2,3]", 2).is_err());
        for wrong in ["", "[", "[1", "[1,]", "[,1]", "[1 2]", "[1]]", "{}"] {
            assert!(elements(wrong, 9).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_special_byte_is_found_wherever_it_stands() {
        for length in 0..200 {
            let mut bytes = vec![b'x'; length];
            assert_eq!(plain(&bytes, 0), length);
            for at in 0..length {
                for special in [b'"', b'\\', 0, 0x1f] {
                    bytes[at] = special;
                    assert_eq!(plain(&bytes, 0), at);
                    assert_eq!(plain(&bytes, at + 1), length);
                }
                bytes[at] = 0xff;
            }
        }
    }
}
