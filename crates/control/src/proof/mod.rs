//! What must never happen, checked against every way in which it might.
//!
//! A [`world`] of two people, two agents and a shell feeds [`inputs`] to an
//! arbiter at chosen moments. A [`referee`] that knows nothing of the
//! arbiter's insides watches calls and effects, probes who is admitted after
//! each step, and names the invariant that is broken. [`exhaustive`] walks
//! through every reachable state of a small configuration; [`random`] draws
//! long interleavings with real durations and jumps of the clock; [`faults`]
//! breaks one rule at a time and shows that the referee sees it.

mod audit;
mod effects;
mod exhaustive;
mod faults;
mod inputs;
mod key;
mod random;
mod referee;
mod search;
mod world;
