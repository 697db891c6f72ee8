//! The names of messages: Claude Code wants UUIDs.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use handover_protocol::SteerId;

/// Which message a UUID is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// The task.
    Task,
    /// A steer.
    Steer(SteerId),
}

/// The messages that were named.
#[derive(Debug)]
pub(super) struct Names {
    salt: u64,
    by_uuid: BTreeMap<String, Message>,
}

impl Names {
    /// No names yet. The salt must differ from run to run: a conversation that is taken up again knows
    /// the messages of earlier runs, and passes over one that it believes to have had.
    pub(super) fn new(salt: u64) -> Self {
        Self {
            salt,
            by_uuid: BTreeMap::new(),
        }
    }

    /// Names a message. A steer whose id is a UUID is called by it.
    pub(super) fn name(&mut self, message: Message) -> String {
        let own = match &message {
            Message::Steer(steer) => steer.as_str(),
            Message::Task => "task",
        };
        let mut uuid = own.to_owned();
        let mut attempt = 0_u64;
        while !is_uuid(&uuid) || self.by_uuid.contains_key(&uuid) {
            uuid = derive(self.salt, own, attempt);
            attempt += 1;
        }
        self.by_uuid.insert(uuid.clone(), message);
        uuid
    }

    /// The message of this name.
    pub(super) fn message(&self, uuid: &str) -> Option<&Message> {
        self.by_uuid.get(uuid)
    }

    /// The steer of this name.
    pub(super) fn steer(&self, uuid: &str) -> Option<SteerId> {
        match self.message(uuid) {
            Some(Message::Steer(steer)) => Some(steer.clone()),
            _ => None,
        }
    }
}

/// Whether a text is a UUID in the one spelling that programs give back unchanged.
fn is_uuid(text: &str) -> bool {
    let digits = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let parts: Vec<&str> = text.split('-').collect();
    let lengths = [8, 4, 4, 4, 12];
    parts.len() == lengths.len()
        && parts
            .iter()
            .zip(lengths)
            .all(|(part, length)| part.len() == length && digits(part))
}

/// A UUID of our own making, version 8, from a text.
fn derive(salt: u64, text: &str, attempt: u64) -> String {
    let half = |which: u8| {
        let mut hasher = DefaultHasher::new();
        (which, salt, attempt, text).hash(&mut hasher);
        hasher.finish()
    };
    let high = (half(0) & !0xf000) | 0x8000;
    let low = (half(1) & !(0b11 << 62)) | (0b10 << 62);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_kept_and_anything_else_is_given_one() {
        let mut names = Names::new(7);
        let uuid = "77ca069b-e606-4f7d-8b15-c46888bf40d7";
        assert_eq!(names.name(Message::Steer(uuid.into())), uuid);
        for id in ["st-1", "", "77CA069B-E606-4F7D-8B15-C46888BF40D7", "ünï"] {
            let name = names.name(Message::Steer(id.into()));
            assert!(is_uuid(&name), "{name}");
            assert_eq!(name.as_bytes()[14], b'8');
            assert_eq!(names.steer(&name), Some(id.into()));
        }
        let task = names.name(Message::Task);
        assert_eq!(names.message(&task), Some(&Message::Task));
        assert_eq!(names.steer(&task), None);
    }

    #[test]
    fn another_run_gives_other_names() {
        let [first, second] = [1, 2].map(|salt| Names::new(salt).name(Message::Task));
        assert_ne!(first, second);
    }

    #[test]
    fn no_two_messages_have_one_name() {
        let mut names = Names::new(7);
        let task = names.name(Message::Task);
        // A steer that calls itself what another message is called already.
        let steer = names.name(Message::Steer(task.as_str().into()));
        assert_ne!(task, steer);
        assert_eq!(names.message(&task), Some(&Message::Task));
    }
}
