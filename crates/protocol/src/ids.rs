//! Names of things on the wire, each of its own type so that they cannot be mixed up.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The name as it stands on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(name.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self {
                Self(name)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

id! {
    /// A session; also the name of its directories.
    SessionId
}
id! {
    /// A desktop of one session, `d1`, `d2`, …
    DesktopId
}
id! {
    /// An agent of one session.
    AgentId
}
id! {
    /// A viewer of one session, `v1`, `v2`, …
    ViewerName
}
id! {
    /// A lease, `l-` and hexadecimal digits; unique for ever.
    LeaseName
}
id! {
    /// A permit, `p1`, `p2`, …
    PermitName
}
id! {
    /// A request for a person, `r1`, `r2`, …
    RequestId
}
id! {
    /// A steer, chosen by the caller or `st-…`.
    SteerId
}

/// Text that must not reach a log: what is typed, or a token. `Debug` shows its length only.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Hidden(String);

impl Hidden {
    /// Wraps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself; the caller takes care that it is not stored or shown.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text itself, by value.
    pub fn into_inner(self) -> String {
        self.0
    }

    /// Its length in characters (Unicode scalar values), which is all that the record keeps.
    pub fn chars(&self) -> usize {
        self.0.chars().count()
    }
}

impl From<&str> for Hidden {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Hidden {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hidden({} chars)", self.chars())
    }
}
