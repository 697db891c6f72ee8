//! `handover report`: the record of a session as one web page that needs nothing else.

mod agents;
pub mod describe;
mod page;
mod pictures;

use std::path::{Path, PathBuf};
use std::time::Duration;

use handover_host::system::atomic_file;
use handover_protocol::ErrorCode;
use serde::Serialize;

pub use self::page::POLICY;
use self::page::Page;
use self::pictures::Pictures;
use super::context::{Context, GlobalArgs, block_on};
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
        let Rendered { html, events, head } = render(&record).await?;
        let path = match args.output {
            Some(path) => std::env::current_dir()?.join(path),
            None => record.dir.join("report.html"),
        };
        write(&path, html.as_bytes())?;
        let report = Report { path, events, head };
        context.print(&report, |report| {
            format!("{}\n", plain(&report.path.to_string_lossy()))
        })
    })
}

/// A page, and what is said of it.
struct Rendered {
    html: String,
    events: usize,
    head: String,
}

async fn render(record: &Record) -> Result<Rendered, Failure> {
    let (events, head) = record.all(0, &[]).await?;
    let (id, dir) = (record.id.clone(), record.dir.clone());
    // Pictures are read, which takes a while.
    let rendered = tokio::task::spawn_blocking(move || {
        let page = Page {
            session: id.as_str(),
            head: &head,
            events: &events,
        };
        Rendered {
            html: page.render(&mut Pictures::of(&dir)),
            events: events.len(),
            head,
        }
    });
    Ok(rendered.await.map_err(std::io::Error::other)?)
}

/// The page of the session called `id`, which need not be live; each answer of its host may take
/// `timeout`.
///
/// # Errors
/// `session_unknown`, and what reading the record comes to.
pub async fn of_session(id: &str, timeout: Duration) -> Result<String, Failure> {
    let context = Context {
        session: Some(id.to_owned()),
        timeout,
        ..Context::new(GlobalArgs::default())
    };
    let record = Record::find(&context).await?;
    Ok(render(&record).await?.html)
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
