//! `handover doctor`: whether this machine has what is needed, and how to mend what is not.

mod kernel;
mod places;
mod programs;

use handover_protocol::ErrorCode;
use serde::Serialize;

use super::context::Context;
use super::failure::Failure;
use super::table::Table;
use super::text::plain;

/// How much depends on a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Need {
    /// Nothing works without.
    Required,
    /// Something is weaker, or missing, without.
    Recommended,
    /// Only those who want it miss it.
    Optional,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    need: Need,
    ok: bool,
    /// What was found.
    detail: String,
    /// What to do about it, if it is not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Check {
    fn good(name: &'static str, need: Need, detail: impl Into<String>) -> Self {
        Self {
            name,
            need,
            ok: true,
            detail: detail.into(),
            remedy: None,
        }
    }

    fn bad(
        name: &'static str,
        need: Need,
        detail: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (detail, remedy) = (detail.into(), Some(remedy.into()));
        Self {
            name,
            need,
            ok: false,
            detail,
            remedy,
        }
    }
}

#[derive(Debug, Serialize)]
struct Diagnosis {
    ok: bool,
    checks: Vec<Check>,
}

/// Runs `handover doctor`.
pub fn run(context: &Context) -> Result<(), Failure> {
    let mut checks = programs::check();
    checks.extend(kernel::check());
    checks.extend(places::check());
    let ok = checks
        .iter()
        .all(|check| check.ok || check.need != Need::Required);
    let diagnosis = Diagnosis { ok, checks };
    if ok || !context.json {
        context.print(&diagnosis, render)?;
    }
    if ok {
        return Ok(());
    }
    let message = "something is missing without which nothing works; see above what to do";
    let failure = Failure::new(ErrorCode::DisplayUnavailable, message);
    Err(failure.beside(serde_json::to_value(&diagnosis).unwrap_or_default()))
}

fn render(diagnosis: &Diagnosis) -> String {
    let mut table = Table::plain();
    for check in &diagnosis.checks {
        let mark = match (check.ok, check.need) {
            (true, _) => "ok",
            (false, Need::Required) => "MISSING",
            (false, Need::Recommended) => "weaker",
            (false, Need::Optional) => "absent",
        };
        table.row([mark.to_owned(), check.name.to_owned(), plain(&check.detail)]);
        if let Some(remedy) = &check.remedy {
            table.row([
                String::new(),
                String::new(),
                format!("to mend: {}", plain(remedy)),
            ]);
        }
    }
    table.render("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_a_person_sees_it() {
        let checks = vec![
            Check::good("Xtigervnc", Need::Required, "/usr/bin/Xtigervnc"),
            Check::bad(
                "openbox",
                Need::Recommended,
                "not found",
                "apt install openbox",
            ),
            Check::bad("pi", Need::Optional, "not found", "npm install pi"),
            Check::bad(
                "state directory",
                Need::Required,
                "mode 0777",
                "chmod 0700 /x",
            ),
        ];
        insta::assert_snapshot!(render(&Diagnosis { ok: false, checks }), @"
        ok       Xtigervnc        /usr/bin/Xtigervnc
        weaker   openbox          not found
                                  to mend: apt install openbox
        absent   pi               not found
                                  to mend: npm install pi
        MISSING  state directory  mode 0777
                                  to mend: chmod 0700 /x
        ");
    }
}
