//! Who may use the console: one-time links, and the cookies that they are exchanged for.
//!
//! Of every secret only its hash is kept. Time is a parameter.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use handover_control::Moment;
use sha2::{Digest, Sha256};

use super::grant::{Grant, Until};
use super::scope::Scope;

/// Bytes of a secret.
const SECRET_BYTES: usize = 32;
/// Most links that were made and not yet used.
pub const MAX_LINKS: usize = 64;
/// Most browsers that are let in at a time.
pub const MAX_GRANTS: usize = 256;
/// The shortest and the longest time that a link can be good for.
pub const LINK_TIMES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(86_400));

/// What a link or a cookie holds. It is shown once, to whom it is for.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A new one.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(hex::encode(bytes)))
    }

    /// Its text, for the one place where it is handed out.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What is kept of a secret.
#[derive(Clone, Copy, Debug)]
struct Hash([u8; 32]);

impl Hash {
    fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// Whether both are of the same secret, in a time that says nothing of where they differ.
    fn is(&self, other: &Self) -> bool {
        let differing = self.0.iter().zip(other.0).map(|(a, b)| a ^ b);
        differing.fold(0, |all, bits| all | bits) == 0
    }
}

/// A link that was made and not yet used.
#[derive(Debug)]
struct Link {
    hash: Hash,
    scope: Scope,
    /// Until when it can be used.
    until: Option<Until>,
}

/// Every link and cookie of a console.
#[derive(Debug, Default)]
pub struct Access {
    links: Vec<Link>,
    grants: Vec<(Hash, Arc<Grant>)>,
}

/// There are too many links that nobody has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{MAX_LINKS} links wait to be opened; open one, or wait until they are no longer good")]
pub struct TooMany;

impl Access {
    /// Adds a link for `secret` into `scope`, good for one use until then.
    ///
    /// # Errors
    /// [`TooMany`].
    pub fn add_link(
        &mut self,
        secret: &Secret,
        scope: Scope,
        until: Option<Until>,
        now: Moment,
    ) -> Result<(), TooMany> {
        self.forget(now);
        if self.links.len() >= MAX_LINKS {
            return Err(TooMany);
        }
        let hash = Hash::of(&secret.0);
        self.links.push(Link { hash, scope, until });
        Ok(())
    }

    /// Uses up the link of `given` and lets whoever has `cookie` in instead. `None` if there is no
    /// such link, it has been used, or its time is over. Where too many browsers are let in, the one
    /// that came first needs a new link.
    pub fn spend(&mut self, given: &str, cookie: &Secret, now: Moment) -> Option<Arc<Grant>> {
        self.forget(now);
        let hash = Hash::of(given);
        // All are compared, whichever it is.
        let found = self
            .links
            .iter()
            .enumerate()
            .fold(
                None,
                |found, (at, link)| {
                    if link.hash.is(&hash) { Some(at) } else { found }
                },
            );
        let link = self.links.swap_remove(found?);
        if self.grants.len() >= MAX_GRANTS {
            self.grants.remove(0);
        }
        // A whole console's session lasts as long as the console, a desktop's as long as its link.
        let until = link.until.filter(|_| link.scope != Scope::All);
        let grant = Arc::new(Grant::new(link.scope, until));
        self.grants.push((Hash::of(&cookie.0), Arc::clone(&grant)));
        Some(grant)
    }

    /// What a browser with this cookie may do, if its time is not over.
    pub fn grant(&self, given: &str, now: Moment) -> Option<Arc<Grant>> {
        let hash = Hash::of(given);
        let found = self.grants.iter().fold(
            None,
            |found, (ours, grant)| {
                if ours.is(&hash) { Some(grant) } else { found }
            },
        );
        found.filter(|grant| grant.is_live(now)).map(Arc::clone)
    }

    /// Forgets what is over.
    fn forget(&mut self, now: Moment) {
        self.links
            .retain(|link| link.until.is_none_or(|until| now < until.moment));
        self.grants.retain(|(_, grant)| grant.is_live(now));
    }
}

/// The value of the cookie called `name` among `headers`; none if it is there twice with different
/// values, as when another server on this machine has set one too.
pub fn cookie<'a>(headers: impl Iterator<Item = &'a str>, name: &str) -> Option<&'a str> {
    let mut found = None;
    for pair in headers.flat_map(|header| header.split(';')) {
        let Some((key, value)) = pair.trim().split_once('=') else {
            continue;
        };
        if key == name {
            match found {
                Some(before) if before != value => return None,
                _ => found = Some(value),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use handover_protocol::Timestamp;
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    fn until(seconds: u64) -> Option<Until> {
        Some(Until {
            moment: at(seconds),
            shown: Timestamp(seconds * 1000),
        })
    }

    fn desktop() -> Scope {
        Scope::Desktop {
            session: "s1".into(),
            desktop: "d1".into(),
        }
    }

    #[test]
    fn a_link_is_good_once() {
        let mut access = Access::default();
        let (link, cookie) = (Secret::generate().unwrap(), Secret::generate().unwrap());
        access.add_link(&link, Scope::All, None, at(0)).unwrap();
        assert!(access.spend("", &cookie, at(1)).is_none());
        assert!(access.spend(&link.0[1..], &cookie, at(1)).is_none());
        let grant = access.spend(link.reveal(), &cookie, at(1)).unwrap();
        assert_eq!(*grant.scope(), Scope::All);
        assert!(access.spend(link.reveal(), &cookie, at(1)).is_none());
        assert!(access.grant(cookie.reveal(), at(1_000_000)).is_some());
        assert!(access.grant(link.reveal(), at(2)).is_none());
        assert!(access.grant("", at(2)).is_none());
    }

    #[test]
    fn a_desktops_link_and_what_came_of_it_end_together() {
        let mut access = Access::default();
        let (late, link, cookie) = (
            Secret::generate().unwrap(),
            Secret::generate().unwrap(),
            Secret::generate().unwrap(),
        );
        access.add_link(&late, desktop(), until(60), at(0)).unwrap();
        access.add_link(&link, desktop(), until(60), at(0)).unwrap();
        let grant = access.spend(link.reveal(), &cookie, at(59)).unwrap();
        assert_eq!(grant.until(), until(60));
        assert!(access.grant(cookie.reveal(), at(59)).is_some());
        assert!(access.grant(cookie.reveal(), at(60)).is_none());
        assert!(access.spend(late.reveal(), &cookie, at(60)).is_none());
    }

    #[test]
    fn a_whole_consoles_link_has_a_time_and_its_session_has_none() {
        let mut access = Access::default();
        let (link, cookie) = (Secret::generate().unwrap(), Secret::generate().unwrap());
        access
            .add_link(&link, Scope::All, until(60), at(0))
            .unwrap();
        let grant = access.spend(link.reveal(), &cookie, at(59)).unwrap();
        assert_eq!(grant.until(), None);
    }

    #[test]
    fn there_are_bounds() {
        let mut access = Access::default();
        let mut links = Vec::new();
        for _ in 0..MAX_LINKS {
            let link = Secret::generate().unwrap();
            access
                .add_link(&link, Scope::All, until(60), at(0))
                .unwrap();
            links.push(link);
        }
        let one_more = Secret::generate().unwrap();
        assert_eq!(
            access.add_link(&one_more, Scope::All, None, at(0)),
            Err(TooMany)
        );
        // What nobody has used in time makes room.
        assert_eq!(access.add_link(&one_more, Scope::All, None, at(60)), Ok(()));
        let first = Secret::generate().unwrap();
        access.spend(one_more.reveal(), &first, at(60)).unwrap();
        for _ in 1..MAX_GRANTS {
            let (link, cookie) = (Secret::generate().unwrap(), Secret::generate().unwrap());
            access.add_link(&link, Scope::All, None, at(60)).unwrap();
            access.spend(link.reveal(), &cookie, at(60)).unwrap();
        }
        assert!(access.grant(first.reveal(), at(60)).is_some());
        let (link, last) = (Secret::generate().unwrap(), Secret::generate().unwrap());
        access.add_link(&link, Scope::All, None, at(60)).unwrap();
        access.spend(link.reveal(), &last, at(60)).unwrap();
        assert!(access.grant(first.reveal(), at(60)).is_none());
        assert!(access.grant(last.reveal(), at(60)).is_some());
    }

    #[test]
    fn nothing_shows_a_secret() {
        let mut access = Access::default();
        let link = Secret::generate().unwrap();
        access.add_link(&link, Scope::All, None, at(0)).unwrap();
        let shown = format!("{access:?} {link:?}");
        assert!(!shown.contains(link.reveal()));
        assert_eq!(link.reveal().len(), 2 * SECRET_BYTES);
    }

    #[test]
    fn cookies() {
        let read = |headers: &[&'static str]| cookie(headers.iter().copied(), "handover-7");
        assert_eq!(read(&["handover-7=ab"]), Some("ab"));
        assert_eq!(read(&["a=b; handover-7=ab; c=d"]), Some("ab"));
        assert_eq!(read(&["a=b", "handover-7=ab"]), Some("ab"));
        assert_eq!(read(&["handover-7=ab; handover-7=ab"]), Some("ab"));
        assert_eq!(read(&["handover-7=ab; handover-7=cd"]), None);
        assert_eq!(
            read(&["handover-77=ab", "xhandover-7=ab", "handover-7"]),
            None
        );
        assert_eq!(read(&[]), None);
    }

    proptest! {
        #[test]
        fn no_other_text_is_the_secret(given in ".{0,80}") {
            let mut access = Access::default();
            let (link, cookie) = (Secret::generate().unwrap(), Secret::generate().unwrap());
            access.add_link(&link, Scope::All, None, at(0)).unwrap();
            prop_assert!(access.spend(&given, &cookie, at(0)).is_none());
            prop_assert!(access.grant(&given, at(0)).is_none());
        }
    }
}
