//! `make bench`: what each step costs, measured on the real program, in one table.
//!
//! Everything runs in directories of its own and is ended afterwards. A row that cannot be measured
//! says why and does not stop the others; the exit code is 1 then. A missed target is shown and is not
//! a failure, since the machine may be busy. Every wait is bounded.

mod figures;
mod pi;
mod place;
mod processor;
mod rfb;
mod rows;
mod screen;
mod server;
mod session;
mod table;
mod wire;

use std::process::ExitCode;

/// Whatever keeps a row from being measured.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The outcome of everything here that can fail.
type Outcome<T> = Result<T, Failure>;

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    if arguments.next().is_some_and(|name| pi::is_its_name(&name)) {
        return pi::speak();
    }
    let arguments: Vec<String> = arguments.collect();
    // Some rows need another process to kill or to compare with, and that is this program again.
    match arguments.split_first() {
        Some((mode, rest)) if mode == rows::HOLD => return rows::hold(rest),
        Some((mode, rest)) if mode == rows::COPY => return rows::copy(rest),
        Some((mode, _)) if mode == rows::SERVE => return rows::serve(),
        _ => {}
    }
    let mut table = table::Table::new();
    for group in rows::ALL.iter().filter(|group| group.is_chosen(&arguments)) {
        eprintln!("measuring: {}", group.name);
        match (group.measure)() {
            Ok(rows) => table.extend(rows),
            Err(failure) => table.fail(group.name, &failure.to_string()),
        }
    }
    print!("{table}");
    if table.is_complete() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
