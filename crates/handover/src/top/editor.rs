//! A text that a person writes: one line or several.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The most bytes of a text, well below what a request may have.
const MOST_BYTES: usize = 256 << 10;

/// What a key meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    /// It changed the text or the cursor, or meant nothing.
    On,
    /// The text is finished.
    Done,
    /// It is given up.
    Cancelled,
}

/// A text and the place in it where the next character goes.
#[derive(Clone, Debug, Default)]
pub struct Editor {
    text: Vec<char>,
    at: usize,
    /// Whether it may have more lines than one.
    lines: bool,
}

impl Editor {
    /// An editor for one line, which holds `text`.
    pub fn line(text: &str) -> Self {
        let text: Vec<char> = text.chars().collect();
        let at = text.len();
        Self {
            text,
            at,
            lines: false,
        }
    }

    /// An editor for several lines, which holds `text`.
    pub fn lines(text: &str) -> Self {
        Self {
            lines: true,
            ..Self::line(text)
        }
    }

    /// The text.
    pub fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// The text before the cursor.
    pub fn before(&self) -> String {
        self.text[..self.at].iter().collect()
    }

    /// The text behind the cursor.
    pub fn behind(&self) -> String {
        self.text[self.at..].iter().collect()
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Typed {
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Typed::Cancelled,
            KeyCode::Char('c') if control => return Typed::Cancelled,
            KeyCode::Enter
                if (alt || key.modifiers.contains(KeyModifiers::SHIFT)) && self.lines =>
            {
                self.insert('\n');
            }
            KeyCode::Char('j') if control && self.lines => self.insert('\n'),
            KeyCode::Enter => return Typed::Done,
            KeyCode::Char('a') if control => self.at = self.line_start(),
            KeyCode::Char('e') if control => self.at = self.line_end(),
            KeyCode::Char('u') if control => self.remove(self.line_start()),
            KeyCode::Char('w') if control => self.remove(self.word_start()),
            KeyCode::Char('b') if alt => self.at = self.word_start(),
            KeyCode::Char('f') if alt => self.at = self.word_end(),
            KeyCode::Char(c) if !control && !alt => self.insert(c),
            KeyCode::Backspace if alt => self.remove(self.word_start()),
            KeyCode::Backspace => self.remove(self.at.saturating_sub(1)),
            KeyCode::Delete if self.at < self.text.len() => {
                self.text.remove(self.at);
            }
            KeyCode::Left if control => self.at = self.word_start(),
            KeyCode::Right if control => self.at = self.word_end(),
            KeyCode::Left => self.at = self.at.saturating_sub(1),
            KeyCode::Right => self.at = (self.at + 1).min(self.text.len()),
            KeyCode::Home => self.at = self.line_start(),
            KeyCode::End => self.at = self.line_end(),
            KeyCode::Up => self.up(),
            KeyCode::Down => self.down(),
            _ => {}
        }
        Typed::On
    }

    /// Takes in a text that was pasted. Nothing in it counts as a key.
    pub fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        for c in text.chars() {
            match c {
                '\n' if !self.lines => self.insert(' '),
                c => self.insert(c),
            }
        }
    }

    /// Control characters other than line breaks and tabs are no text.
    fn insert(&mut self, c: char) {
        let is_text = !c.is_control() || c == '\n' || c == '\t';
        // A character takes at most four bytes.
        if is_text && (self.text.len() + 1) * 4 <= MOST_BYTES {
            self.text.insert(self.at, c);
            self.at += 1;
        }
    }

    fn remove(&mut self, from: usize) {
        self.text.drain(from..self.at);
        self.at = from;
    }

    fn line_start(&self) -> usize {
        let before = &self.text[..self.at];
        before
            .iter()
            .rposition(|c| *c == '\n')
            .map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let behind = &self.text[self.at..];
        self.at
            + behind
                .iter()
                .position(|c| *c == '\n')
                .unwrap_or(behind.len())
    }

    fn word_start(&self) -> usize {
        let mut at = self.at;
        while at > 0 && self.text[at - 1].is_whitespace() {
            at -= 1;
        }
        while at > 0 && !self.text[at - 1].is_whitespace() {
            at -= 1;
        }
        at
    }

    fn word_end(&self) -> usize {
        let mut at = self.at;
        while at < self.text.len() && self.text[at].is_whitespace() {
            at += 1;
        }
        while at < self.text.len() && !self.text[at].is_whitespace() {
            at += 1;
        }
        at
    }

    fn up(&mut self) {
        let start = self.line_start();
        if start == 0 {
            self.at = 0;
            return;
        }
        let column = self.at - start;
        self.at = start - 1;
        self.at = (self.line_start() + column).min(start - 1);
    }

    fn down(&mut self) {
        let column = self.at - self.line_start();
        let end = self.line_end();
        if end == self.text.len() {
            self.at = end;
            return;
        }
        self.at = end + 1;
        self.at = (self.at + column).min(self.line_end());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn press(editor: &mut Editor, code: KeyCode, modifiers: KeyModifiers) -> Typed {
        editor.key(KeyEvent::new(code, modifiers))
    }

    fn write(editor: &mut Editor, text: &str) {
        for c in text.chars() {
            press(editor, KeyCode::Char(c), KeyModifiers::NONE);
        }
    }

    #[test]
    fn one_line_and_several() {
        let mut editor = Editor::lines("");
        write(&mut editor, "one");
        assert_eq!(
            press(&mut editor, KeyCode::Enter, KeyModifiers::ALT),
            Typed::On
        );
        write(&mut editor, "two");
        assert_eq!(editor.text(), "one\ntwo");
        press(&mut editor, KeyCode::Up, KeyModifiers::NONE);
        press(&mut editor, KeyCode::Home, KeyModifiers::NONE);
        write(&mut editor, ">");
        assert_eq!(
            (editor.before().as_str(), editor.behind().as_str()),
            (">", "one\ntwo")
        );
        press(&mut editor, KeyCode::Down, KeyModifiers::NONE);
        press(&mut editor, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!(editor.text(), ">one\nwo");
        assert_eq!(
            press(&mut editor, KeyCode::Enter, KeyModifiers::NONE),
            Typed::Done
        );

        let mut editor = Editor::line("note");
        assert_eq!(
            press(&mut editor, KeyCode::Enter, KeyModifiers::ALT),
            Typed::Done
        );
        editor.paste(" a\r\nb");
        assert_eq!(editor.text(), "note a b");
        press(&mut editor, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(editor.text(), "note a ");
        assert_eq!(
            press(&mut editor, KeyCode::Esc, KeyModifiers::NONE),
            Typed::Cancelled
        );
    }

    #[test]
    fn what_is_pasted_is_text_only_and_bounded() {
        let mut editor = Editor::lines("");
        editor.paste("a\u{1b}[2Jb\r\n\tc");
        assert_eq!(editor.text(), "a[2Jb\n\tc");
        editor.paste(&"x".repeat(2 * MOST_BYTES));
        assert!(editor.text().len() <= MOST_BYTES);
    }

    proptest! {
        #[test]
        fn no_key_goes_wrong(keys in proptest::collection::vec((0u8..16, any::<char>(), 0u8..4), 0..60)) {
            let codes = [
                KeyCode::Backspace, KeyCode::Delete, KeyCode::Left, KeyCode::Right, KeyCode::Up,
                KeyCode::Down, KeyCode::Home, KeyCode::End, KeyCode::Enter, KeyCode::Char('w'),
                KeyCode::Char('u'), KeyCode::Char('b'), KeyCode::Char('f'), KeyCode::Char('j'),
            ];
            let mut editor = Editor::lines("one two\nthree");
            for (code, c, modifiers) in keys {
                let code = codes.get(usize::from(code)).copied().unwrap_or(KeyCode::Char(c));
                let modifiers = [KeyModifiers::NONE, KeyModifiers::ALT, KeyModifiers::CONTROL, KeyModifiers::SHIFT]
                    [usize::from(modifiers)];
                editor.key(KeyEvent::new(code, modifiers));
                prop_assert_eq!(editor.before() + &editor.behind(), editor.text());
            }
        }
    }
}
