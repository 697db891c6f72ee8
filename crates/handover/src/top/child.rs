//! `handover watch --control` below the same terminal, as an editor runs a command: it has the terminal
//! while it runs, with its keys, its notes and its Ctrl-Z, and is ended with this program.

use std::ffi::OsStr;
use std::io::{self, BufRead, Write};
use std::process::ExitStatus;
use std::time::Duration;

use handover_host::system::process::{Stat, to_raw};
use handover_protocol::{DesktopId, SessionId};
use rustix::process::{Signal, kill_process};
use tokio::process::{Child, Command};

use super::run::{Asked, Signals};

/// How often it is looked whether it has stopped itself after Ctrl-Z.
const LOOK: Duration = Duration::from_millis(50);

/// How long it may take to return control when this program is told to end.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// How the takeover ended for this program.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself; whether all went well.
    Itself(bool),
    /// This program is told to end.
    WithUs,
}

/// Runs it to its end. The terminal must have been given back.
///
/// # Errors
/// If it cannot be started.
pub async fn take(
    session: &SessionId,
    desktop: &DesktopId,
    viewer: &OsStr,
    signals: &mut Signals,
) -> io::Result<Ended> {
    let program = std::env::current_exe()?;
    let arguments: [&OsStr; 7] = [
        "watch".as_ref(),
        desktop.as_str().as_ref(),
        "--control".as_ref(),
        "--session".as_ref(),
        session.as_str().as_ref(),
        "--viewer".as_ref(),
        viewer,
    ];
    let mut child = Command::new(program)
        .args(arguments)
        .env_remove("HANDOVER_SESSION")
        .spawn()?;
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // Ctrl-C and Ctrl-Z reach both of us, and are for it alone.
    let mut suspended = false;
    loop {
        tokio::select! {
            ended = child.wait() => {
                let well = went_well(ended?);
                return Ok(match signals.forget().await {
                    true => Ended::WithUs,
                    false => Ended::Itself(well),
                });
            }
            asked = signals.next() => match asked {
                Asked::End => {
                    end(&mut child).await;
                    return Ok(Ended::WithUs);
                }
                Asked::Suspend => suspended = true,
                Asked::Interrupt | Asked::Resize | Asked::GoOn => {}
            },
            // It has returned control and stopped itself, as it would below a shell. There is nothing
            // left to come back to but its end.
            _ = look.tick(), if suspended => if is_stopped(&child) {
                signal(&child, Signal::CONT);
            },
        }
    }
}

/// Whether a person has nothing to read: it ended as it should, or as they wanted.
fn went_well(status: ExitStatus) -> bool {
    const INTERRUPTED: i32 = 130;
    status.success() || status.code() == Some(INTERRUPTED)
}

fn is_stopped(child: &Child) -> bool {
    let stat = child.id().and_then(|pid| Stat::of(pid).ok());
    stat.is_some_and(|stat| stat.state == 'T')
}

fn signal(child: &Child, signal: Signal) {
    // One that has just ended needs none.
    if let Some(Ok(pid)) = child.id().map(to_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Asks it to end, which returns control, and waits for that.
async fn end(child: &mut Child) {
    signal(child, Signal::TERM);
    let _ = tokio::time::timeout(ENDS_WITHIN, child.wait()).await;
}

/// Lets a person read what was said before the screen comes back.
pub async fn wait_for_enter(signals: &mut Signals) {
    let mut err = io::stderr();
    let _ = write!(err, "\npress Enter to go back to handover top ");
    let _ = err.flush();
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)
    });
    tokio::select! {
        _ = read => {}
        _ = signals.next() => {}
    }
}
