//! The agent program codex, over its app-server.

use crate::support::{Program, aborts, receipts};

receipts!(Program::Codex);
receipts!(Program::Codex, [while_it_asks]);
aborts!(Program::Codex);
