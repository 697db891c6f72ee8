//! The agent program Claude Code, over stream-json.

use crate::support::{Program, aborts, receipts};

receipts!(Program::Claude);
receipts!(Program::Claude, [while_it_asks]);
aborts!(Program::Claude);
