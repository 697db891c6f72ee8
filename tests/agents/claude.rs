//! The agent program Claude Code, over stream-json.

use crate::support::{Program, aborts, receipts};

receipts!(Program::Claude);
receipts!(Program::Claude, [at_once]);
aborts!(Program::Claude);
