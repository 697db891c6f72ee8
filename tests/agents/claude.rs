//! The agent program Claude Code, over stream-json.

use crate::support::{Program, receipts};

receipts!(Program::Claude);
receipts!(Program::Claude, [while_it_asks]);
