//! How what is put in looks: like the lines around it.

/// How the members of an object are laid out.
#[derive(Clone, Copy, Debug)]
pub enum Layout<'a> {
    /// A line each.
    Lines {
        /// The line end of the file.
        newline: &'a str,
        /// What one step to the right is.
        step: &'a str,
    },
    /// All on one line, with spaces between, but none inside of brackets.
    Spaced,
    /// All on one line, without spaces.
    Tight,
}

impl Layout<'_> {
    /// `"name": value`.
    pub fn member(self, name: &str, value: &str) -> String {
        let space = if matches!(self, Self::Tight) { "" } else { " " };
        format!("{}:{space}{value}", json_string(name))
    }

    /// An object that begins on a line indented by `indent`.
    pub fn object(self, indent: &str, members: &[String]) -> String {
        self.enclosed('{', '}', indent, members)
    }

    /// A list of strings; a line each only where that is asked for.
    pub fn list(self, indent: &str, items: &[String], in_lines: bool) -> String {
        match self {
            Self::Lines { .. } if !in_lines => Self::Spaced.enclosed('[', ']', indent, items),
            _ => self.enclosed('[', ']', indent, items),
        }
    }

    fn enclosed(self, open: char, close: char, indent: &str, parts: &[String]) -> String {
        match self {
            Self::Lines { newline, step } => {
                let lines: Vec<String> = parts
                    .iter()
                    .map(|part| format!("{newline}{indent}{step}{part}"))
                    .collect();
                format!("{open}{}{newline}{indent}{close}", lines.join(","))
            }
            Self::Spaced => format!("{open}{}{close}", parts.join(", ")),
            Self::Tight => format!("{open}{}{close}", parts.join(",")),
        }
    }

    /// What one step to the right is.
    pub fn step(&self) -> &str {
        match self {
            Self::Lines { step, .. } => step,
            Self::Spaced | Self::Tight => "",
        }
    }
}

/// The line end that a text has: that of its first line.
pub fn newline_of(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// The white space at the start of the line in which a byte stands.
pub fn indent_of(text: &str, byte: usize) -> &str {
    let start = text[..byte].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..byte];
    let length = line.len() - line.trim_start_matches([' ', '\t']).len();
    &line[..length]
}

/// A string as JSON has it.
pub fn json_string(string: &str) -> String {
    serde_json::Value::from(string).to_string()
}

/// A string as TOML has it: all that JSON escapes is escaped alike, and one character more has to be.
pub fn toml_string(string: &str) -> String {
    json_string(string).replace('\u{7f}', "\\u007F")
}
