//! Names of the things the arbiter tells apart.
//!
//! All but [`PermitId`] and [`FlushId`] are chosen by the shell, which never
//! uses one twice in the life of an arbiter.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $format:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }
    };
}

id! {
    /// A person's lease, whether asked for, live or over.
    LeaseId, "l-{:x}"
}
id! {
    /// The connection to the host whose end is the end of a controller.
    ControllerId, "c{}"
}
id! {
    /// An RFB client behind the gate.
    ViewerId, "v{}"
}
id! {
    /// A process tree on whose behalf permits are taken.
    OwnerId, "o{}"
}
id! {
    /// An agent's right to perform one action; counted by the arbiter.
    PermitId, "p{}"
}
id! {
    /// One request to release and fence; counted by the arbiter so that the
    /// late answer to an old fence is never taken for the answer to a new one.
    FlushId, "f{}"
}

/// The fencing number of a desktop; grows by one at every change of control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch that the next change of control begins.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The hash of a lease's secret token. The token itself never comes here.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash(pub [u8; 32]);

impl fmt::Debug for TokenHash {
    /// Hashes are not secret, but there is no reason to log one either.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(..)")
    }
}
