//! Durations as people write and read them.

use std::time::Duration;

/// Reads `500ms`, `10s`, `2m`, `1h`, `1d`, or a plain number of seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || "a duration must look like 500ms, 10s, 2m, 1h or 1d".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ms_per_unit: u64 = match &text[digits.len()..] {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let count: u64 = digits.parse().map_err(|_| wrong())?;
    count
        .checked_mul(ms_per_unit)
        // A year is longer than anything here and fits every clock.
        .filter(|ms| *ms <= 366 * 24 * 3_600_000)
        .map(Duration::from_millis)
        .ok_or_else(wrong)
}

/// Milliseconds, for the wire.
pub fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Writes milliseconds as `0.4 s`, `42 s`, `3:20` or `1:02:03`.
pub fn show(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..10 => format!("{}.{} s", seconds, ms % 1000 / 100),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!(
            "{}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        ),
    }
}

/// Writes how long ago something began, in one unit: `42s`, `3m`, `2h` or `5d`.
pub fn age(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse("1d"), parse("24h"));
        for text in [
            "",
            "m",
            "-1s",
            "+1s",
            "1.5s",
            "1w",
            "367d",
            "99999999999999999999s",
            "9999999h",
            "é",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shown() {
        assert_eq!(show(420), "0.4 s");
        assert_eq!(show(42_000), "42 s");
        assert_eq!(show(200_000), "3:20");
        assert_eq!(show(3_723_000), "1:02:03");
    }

    #[test]
    fn ages() {
        assert_eq!(age(0), "0s");
        assert_eq!(age(59_999), "59s");
        assert_eq!(age(60_000), "1m");
        assert_eq!(age(7_200_000), "2h");
        assert_eq!(age(3 * 86_400_000), "3d");
    }
}
