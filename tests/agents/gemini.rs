//! The agent program Gemini CLI, over the agent client protocol.

use crate::support::{Program, aborts, receipts};

receipts!(Program::Gemini);
receipts!(Program::Gemini, [at_once]);
aborts!(Program::Gemini);
