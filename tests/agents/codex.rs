//! The agent program codex, over its app-server.

use crate::support::{Program, aborts, receipts};

receipts!(Program::Codex);
aborts!(Program::Codex);
