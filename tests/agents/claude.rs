//! The agent program Claude Code, over stream-json.

use crate::support::{Program, aborts, receipts};

receipts!(Program::Claude);
aborts!(Program::Claude);
