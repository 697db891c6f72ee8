//! The rows of the table, in groups that share what they need.

mod agents;
mod click;
mod console;
mod copy;
mod devtools;
mod gate;
mod idle;
mod kill;
mod permit;
mod relay;
mod screenshot;
mod start;
mod takeover;

pub use copy::{COPY, copy};
pub use kill::{HOLD, hold};
pub use relay::{SERVE, serve};

use crate::{Outcome, figures::Row};

/// Rows that are measured together.
pub struct Group {
    /// What is measured.
    pub name: &'static str,
    /// Measures it.
    pub measure: fn() -> Outcome<Vec<Row>>,
}

impl Group {
    /// Whether one of these words is part of its name; all are, if there are none.
    pub fn is_chosen(&self, words: &[String]) -> bool {
        words.is_empty() || words.iter().any(|word| self.name.contains(word.as_str()))
    }
}

/// All groups, in the order of the table.
pub const ALL: [Group; 18] = [
    Group {
        name: "permit in process",
        measure: permit::measure,
    },
    Group {
        name: "click",
        measure: click::measure,
    },
    Group {
        name: "screenshot",
        measure: screenshot::measure,
    },
    Group {
        name: "start to first frame",
        measure: start::measure,
    },
    Group {
        name: "takeover",
        measure: takeover::measure,
    },
    Group {
        name: "kill of the controller",
        measure: kill::measure,
    },
    Group {
        name: "gate and direct",
        measure: gate::measure,
    },
    Group {
        name: "devtools",
        measure: devtools::measure,
    },
    Group {
        name: "relay",
        measure: relay::measure,
    },
    Group {
        name: "idle host",
        measure: idle::measure,
    },
    Group {
        name: "list of agents",
        measure: agents::list::measure,
    },
    Group {
        name: "spawn",
        measure: agents::spawn::measure,
    },
    Group {
        name: "steer",
        measure: agents::steer::measure,
    },
    Group {
        name: "events",
        measure: agents::events::measure,
    },
    Group {
        name: "abort",
        measure: agents::abort::measure,
    },
    Group {
        name: "memory of agents",
        measure: agents::memory::measure,
    },
    Group {
        name: "web console in a browser",
        measure: console::measure,
    },
    Group {
        name: "memory of the web console",
        measure: console::memory,
    },
];
