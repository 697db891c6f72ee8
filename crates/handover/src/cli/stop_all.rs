//! `handover stop-all`: every desktop is paused and every agent aborted.

use handover_protocol::{Method, StopAllInputParams, StopAllInputResult};

use super::context::{Context, block_on};
use super::failure::Failure;
use super::list;
use super::session::Session;
use super::text::count;

/// Runs `handover stop-all`.
pub fn run(context: &Context) -> Result<(), Failure> {
    block_on(async {
        let session = Session::open(context).await?;
        // Ending process trees takes its time, and this must not be given up half-way.
        let result: StopAllInputResult = session
            .call_patiently(Method::StopAllInput, &StopAllInputParams {})
            .await?;
        context.print(&result, render)
    })
}

fn render(result: &StopAllInputResult) -> String {
    let mut text = format!(
        "paused {}, aborted {}; `handover resume` lets a desktop go on\n",
        count(result.desktops.len() as u64, "desktop"),
        count(result.agents.len() as u64, "agent")
    );
    if !result.desktops.is_empty() {
        text.push_str(&list::desktops(&result.desktops));
    }
    text
}
