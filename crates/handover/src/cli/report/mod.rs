//! `handover report`: the record of a session as one web page that needs nothing else.

mod agents;
mod describe;
mod page;
mod pictures;

use std::path::{Path, PathBuf};

use handover_host::system::atomic_file;
use handover_protocol::ErrorCode;
use serde::Serialize;

use self::page::Page;
use self::pictures::Pictures;
use super::context::{Context, block_on};
use super::failure::Failure;
use super::record::Record;
use super::text::plain;

/// Arguments of `handover report`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file to write [default: report.html in the session's directory]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Report {
    path: PathBuf,
    events: usize,
    head: String,
}

/// Runs `handover report`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    block_on(async {
        let record = Record::find(context).await?;
        let (events, head) = record.all(0, &[]).await?;
        let mut pictures = Pictures::of(&record.dir);
        let page = Page {
            session: record.id.as_str(),
            head: &head,
            events: &events,
        };
        let html = page.render(&mut pictures);
        let path = match args.output {
            Some(path) => std::env::current_dir()?.join(path),
            None => record.dir.join("report.html"),
        };
        write(&path, html.as_bytes())?;
        let report = Report {
            path,
            events: events.len(),
            head,
        };
        context.print(&report, |report| {
            format!("{}\n", plain(&report.path.to_string_lossy()))
        })
    })
}

fn write(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    // Whole or not at all: a report that is cut short would hide what happened last.
    atomic_file::replace(path, contents).map_err(|error| {
        let message = format!(
            "cannot write {}: {error}; choose a place with --output",
            path.display()
        );
        Failure::new(ErrorCode::StorageFailed, message)
    })
}
