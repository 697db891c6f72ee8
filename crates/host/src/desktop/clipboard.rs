//! Who owns the display's clipboard, and what the host answers when an
//! application asks for it.
//!
//! The host speaks the extended clipboard on its own connection only. It offers
//! a text without sending it; the display asks for it at the moment an
//! application pastes. That is what makes an agent's paste observable (the
//! application took it) and revocable (until it did, the host can answer with
//! an empty text instead).

/// What the desktop's task has to send to the display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Send {
    /// Tell the display that the host owns the clipboard now.
    Announce,
    /// Answer the display's question with this text.
    Provide(String),
    /// Ask the display for the text that an application copied.
    Request,
}

/// What happened, for the desktop's task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// An application took the text that the host offered.
    Taken,
    /// An application copied something; its text can be asked for.
    Copied,
    /// This is the text that an application copied.
    Text(String),
}

/// The clipboard of one display, seen from the host's connection.
#[derive(Debug, Default)]
pub struct DisplayClipboard {
    /// What the host offers; `None` while an application owns the clipboard or
    /// nobody does.
    offered: Option<String>,
    /// An application owns the clipboard and has text.
    copied: bool,
    /// The host asked for the application's text and awaits it.
    asked: bool,
}

impl DisplayClipboard {
    /// Offers a text. It stays with the host until an application asks.
    pub fn offer(&mut self, text: String) -> Send {
        self.offered = Some(text);
        self.copied = false;
        self.asked = false;
        Send::Announce
    }

    /// Takes back what was offered: the host stays the owner, and whoever
    /// asks from now on gets an empty text.
    pub fn withdraw(&mut self) {
        if let Some(text) = &mut self.offered {
            text.clear();
        }
    }

    /// Asks for the text of the application that owns the clipboard.
    pub fn ask(&mut self) -> Option<Send> {
        if !self.copied || self.asked {
            return None;
        }
        self.asked = true;
        Some(Send::Request)
    }

    /// The display said that an application copied something (`has_text`), or
    /// that nobody owns the clipboard.
    pub fn notified(&mut self, has_text: bool) -> Option<Happened> {
        self.offered = None;
        self.asked = false;
        self.copied = has_text;
        has_text.then_some(Happened::Copied)
    }

    /// The display asks for the text because an application pastes.
    pub fn requested(&mut self) -> (Send, Option<Happened>) {
        match &self.offered {
            Some(text) => {
                let taken = !text.is_empty();
                (
                    Send::Provide(text.clone()),
                    taken.then_some(Happened::Taken),
                )
            }
            None => (Send::Provide(String::new()), None),
        }
    }

    /// The display sent the text of the application that owns the clipboard.
    pub fn provided(&mut self, text: String) -> Option<Happened> {
        std::mem::take(&mut self.asked).then_some(Happened::Text(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_handed_out_when_asked_for() {
        let mut clipboard = DisplayClipboard::default();
        assert_eq!(clipboard.offer("x".into()), Send::Announce);
        assert_eq!(
            clipboard.requested(),
            (Send::Provide("x".into()), Some(Happened::Taken))
        );
    }

    #[test]
    fn a_withdrawn_offer_gives_an_empty_text_and_counts_as_nothing() {
        let mut clipboard = DisplayClipboard::default();
        clipboard.offer("secret".into());
        clipboard.withdraw();
        assert_eq!(clipboard.requested(), (Send::Provide(String::new()), None));
    }

    #[test]
    fn an_application_that_copies_ends_the_offer() {
        let mut clipboard = DisplayClipboard::default();
        clipboard.offer("x".into());
        assert_eq!(clipboard.notified(true), Some(Happened::Copied));
        assert_eq!(clipboard.requested(), (Send::Provide(String::new()), None));
    }

    #[test]
    fn text_is_taken_only_when_it_was_asked_for() {
        let mut clipboard = DisplayClipboard::default();
        assert_eq!(clipboard.provided("x".into()), None);
        clipboard.notified(true);
        assert_eq!(clipboard.ask(), Some(Send::Request));
        assert_eq!(clipboard.ask(), None, "one question at a time");
        assert_eq!(
            clipboard.provided("x".into()),
            Some(Happened::Text("x".into()))
        );
    }
}
