//! Placeholder replaced with the first real commit of this crate.
