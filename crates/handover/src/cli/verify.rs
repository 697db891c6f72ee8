//! `handover verify`: whether the record was altered.

use handover_protocol::ErrorCode;
use handover_store::{Flaw, VerifyReport, verify_dir};

use super::context::{Context, block_on};
use super::failure::Failure;
use super::record::Record;
use super::text::count;

/// Digits of a head, a SHA-256.
const HEAD_DIGITS: usize = 64;

/// Arguments of `handover verify`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A head printed earlier: it must still be part of the record
    #[arg(long, value_name = "HASH", value_parser = head)]
    head: Option<String>,
}

/// A head as it is printed: anything else cannot be one, and to look for it would tell of an
/// alteration that is none.
fn head(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.len() == HEAD_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(text.to_owned())
    } else {
        Err(format!("a head is {HEAD_DIGITS} hexadecimal digits"))
    }
}

/// Runs `handover verify`.
pub fn run(args: Args, context: &Context) -> Result<(), Failure> {
    block_on(async {
        let record = Record::find(context).await?;
        // The database itself is read, also beside a running host: the check does not rest on
        // the program that wrote it.
        let report = verify_dir(&record.dir, args.head.as_deref())
            .map_err(|error| Failure::new(ErrorCode::StorageFailed, error.to_string()))?;
        if report.ok {
            return context.print(&report, render);
        }
        let json = serde_json::to_value(&report).unwrap_or_default();
        let failure = Failure::new(ErrorCode::StorageFailed, render(&report).trim_end());
        Err(failure.beside(json))
    })
}

fn render(report: &VerifyReport) -> String {
    let (events, head) = (report.events, &report.head);
    if report.ok {
        return format!(
            "the record is whole: {}\nhead {head}\n",
            count(events, "event")
        );
    }
    let mut text = format!(
        "the record was altered: {} in {}\n",
        count(report.flaws, "flaw"),
        count(events, "event")
    );
    for problem in &report.problems {
        let what = match problem.flaw {
            Flaw::Changed => "was changed",
            Flaw::Removed => "follows a gap: events before it were removed",
            Flaw::Reordered => "stands in another place than it was written",
            Flaw::Truncated => "is the last, and the head that was given does not come before it",
        };
        text.push_str(&format!("  event {} {what}\n", problem.seq));
    }
    if report.flaws > report.problems.len() as u64 {
        text.push_str("  …\n");
    }
    text.push_str(&format!("head {head}\n"));
    text
}

#[cfg(test)]
mod tests {
    use handover_store::Problem;

    use super::*;

    #[test]
    fn a_head_is_64_hexadecimal_digits() {
        let whole = "0123456789abcdefABCDEF".repeat(3)[..64].to_owned();
        assert_eq!(head(&format!(" {whole}\n")), Ok(whole.clone()));
        for text in [
            "",
            "abc",
            &whole[1..],
            &format!("{whole}0"),
            &whole.replace('a', "g"),
        ] {
            assert!(head(text).is_err(), "{text}");
        }
    }

    #[test]
    fn as_a_person_sees_it() {
        let mut report = VerifyReport {
            ok: true,
            events: 12,
            head: "ab12".to_owned(),
            flaws: 0,
            problems: Vec::new(),
        };
        insta::assert_snapshot!(render(&report), @"
        the record is whole: 12 events
        head ab12
        ");
        report.ok = false;
        report.flaws = 3;
        report.problems = vec![
            Problem {
                seq: 3,
                flaw: Flaw::Changed,
            },
            Problem {
                seq: 12,
                flaw: Flaw::Truncated,
            },
        ];
        insta::assert_snapshot!(render(&report), @"
        the record was altered: 3 flaws in 12 events
          event 3 was changed
          event 12 is the last, and the head that was given does not come before it
          …
        head ab12
        ");
    }
}
