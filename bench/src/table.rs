//! The table that is printed.

use std::{fmt, time::Duration};

use crate::figures::{Figure, Row, Target};

/// All rows, and what could not be measured.
pub struct Table {
    rows: Vec<Row>,
    failures: Vec<(String, String)>,
}

impl Table {
    /// An empty table.
    pub fn new() -> Self {
        Self {
            rows: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Adds rows in their order.
    pub fn extend(&mut self, rows: Vec<Row>) {
        self.rows.extend(rows);
    }

    /// Notes what could not be measured, and why.
    pub fn fail(&mut self, name: &str, why: &str) {
        self.failures.push((name.to_owned(), why.to_owned()));
    }

    /// Whether everything could be measured.
    pub fn is_complete(&self) -> bool {
        self.failures.is_empty()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![["what", "n", "median", "p99", "target", ""].map(str::to_owned)];
        lines.extend(self.rows.iter().map(cells));
        let widths: Vec<usize> = (0..6)
            .map(|column| lines.iter().map(|line| line[column].chars().count()).max())
            .map(Option::unwrap_or_default)
            .collect();
        for (no, [what, numbers @ ..]) in lines.iter().enumerate() {
            let mut text = format!("{what:<width$}", width = widths[0]);
            for (cell, width) in numbers.iter().zip(&widths[1..]) {
                text.push_str(&format!("  {cell:>width$}"));
            }
            writeln!(f, "{}", text.trim_end())?;
            if no == 0 {
                writeln!(f, "{}", "-".repeat(widths.iter().sum::<usize>() + 10))?;
            }
        }
        for (name, why) in &self.failures {
            writeln!(f, "not measured: {name}: {why}")?;
        }
        Ok(())
    }
}

fn cells(row: &Row) -> [String; 6] {
    let (count, median, p99) = match &row.figure {
        Figure::Times(samples) => (
            samples.len().to_string(),
            time(samples.median()),
            time(samples.p99()),
        ),
        Figure::Number(value, unit) => (String::new(), number(*value, unit), String::new()),
    };
    let target = match (&row.target, &row.figure) {
        (None, _) => String::new(),
        (Some(Target::Below(limit)), Figure::Times(_)) => {
            format!("< {}", time(Duration::from_secs_f64(*limit)))
        }
        (Some(Target::Below(limit)), Figure::Number(_, unit)) => {
            format!("< {}", number(*limit, unit))
        }
        (Some(Target::AtLeast(limit)), Figure::Number(_, unit)) => {
            format!(">= {}", number(*limit, unit))
        }
        (Some(Target::AtLeast(limit)), Figure::Times(_)) => {
            format!(">= {}", time(Duration::from_secs_f64(*limit)))
        }
    };
    let verdict = match row.is_met() {
        None => "",
        Some(true) => "met",
        Some(false) => "MISSED",
    };
    [
        row.name.clone(),
        count,
        median,
        p99,
        target,
        verdict.to_owned(),
    ]
}

fn number(value: f64, unit: &str) -> String {
    if unit.is_empty() {
        format!("{value:.2}")
    } else if value.abs() < 10.0 {
        format!("{value:.2} {unit}")
    } else {
        format!("{value:.1} {unit}")
    }
}

/// Three digits that count, in the unit that suits.
fn time(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    let (value, unit) = match nanos {
        ..1e3 => (nanos, "ns"),
        1e3..1e6 => (nanos / 1e3, "us"),
        1e6..1e9 => (nanos / 1e6, "ms"),
        _ => (nanos / 1e9, "s"),
    };
    let digits = if value < 10.0 {
        2
    } else {
        usize::from(value < 100.0)
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Samples;

    #[test]
    fn times_read_well() {
        assert_eq!(time(Duration::from_nanos(87)), "87.0 ns");
        assert_eq!(time(Duration::from_micros(640)), "640 us");
        assert_eq!(time(Duration::from_micros(4230)), "4.23 ms");
        assert_eq!(time(Duration::from_millis(1500)), "1.50 s");
    }

    #[test]
    fn columns_line_up() {
        let mut samples = Samples::default();
        samples.push(Duration::from_millis(2));
        let mut table = Table::new();
        table.extend(vec![
            Row::times("click", samples).below(Duration::from_millis(1)),
            Row::number("gate, share of direct", 0.613, "").at_least(0.55),
        ]);
        table.fail("idle", "no host");
        let text = table.to_string();
        let expected = "\
what                   n   median      p99     target\n\
-------------------------------------------------------------\n\
click                  1  2.00 ms  2.00 ms  < 1.00 ms  MISSED\n\
gate, share of direct        0.61             >= 0.55     met\n\
not measured: idle: no host\n";
        assert_eq!(text, expected);
    }
}
