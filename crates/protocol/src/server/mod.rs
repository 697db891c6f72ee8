//! Serving an attach socket.
//!
//! The parts that every server of one needs: a private place ([`dirs`]), the lock that says whose it is
//! ([`lock`]), a socket that nobody else can reach ([`socket`]), files that are whole for every reader
//! ([`atomic_file`]), a manifest that keeps up ([`manifest`]), a bounded queue for each client
//! ([`outlet`]), and a word to those who are not served ([`turn_away`]).

pub mod atomic_file;
pub mod dirs;
pub mod lock;
pub mod manifest;
pub mod outlet;
pub mod socket;
pub mod turn_away;
