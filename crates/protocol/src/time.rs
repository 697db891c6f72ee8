//! Wall-clock times on the wire: RFC 3339, UTC, milliseconds, as in `2026-01-31T09:30:00.250Z`.
//!
//! They are for people and for the record. No decision is made with them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A moment of the wall clock, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(pub u64);

/// The last moment with a four-digit year: 9999-12-31T23:59:59.999Z.
const LAST: u64 = 253_402_300_799_999;

const DAY_MS: u64 = 86_400_000;

impl Timestamp {
    /// The time `since_epoch` after 1970-01-01T00:00:00Z, to the millisecond.
    pub fn from_unix(since_epoch: std::time::Duration) -> Self {
        let ms = u64::try_from(since_epoch.as_millis()).unwrap_or(LAST);
        Self(ms.min(LAST))
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub fn unix_ms(self) -> u64 {
        self.0
    }
}

/// Why a text is not a time; it does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a time must look like 2026-01-31T09:30:00.250Z (RFC 3339, UTC)")]
pub struct BadTime;

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.0.min(LAST);
        let (year, month, day) = civil(at / DAY_MS);
        let ms = at % DAY_MS;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
            ms / 3_600_000,
            ms / 60_000 % 60,
            ms / 1000 % 60,
            ms % 1000
        )
    }
}

impl FromStr for Timestamp {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Self, BadTime> {
        let bytes = text.as_bytes();
        let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
        if bytes.len() < 20 || separators.iter().any(|&(at, byte)| bytes[at] != byte) {
            return Err(BadTime);
        }
        let fraction = match &bytes[19..] {
            b"Z" => 0,
            [b'.', digits @ .., b'Z'] if (1..=9).contains(&digits.len()) => {
                // Only the first three digits count; missing ones are zeros.
                let mut three = *b"000";
                for (to, from) in three.iter_mut().zip(digits) {
                    *to = *from;
                }
                number(digits)?;
                number(&three)?
            }
            _ => return Err(BadTime),
        };
        let year = number(&bytes[0..4])?;
        let month = number(&bytes[5..7])?;
        let day = number(&bytes[8..10])?;
        let (hour, minute) = (number(&bytes[11..13])?, number(&bytes[14..16])?);
        let second = number(&bytes[17..19])?;
        if year < 1970 || hour > 23 || minute > 59 || second > 59 {
            return Err(BadTime);
        }
        let days = days_before(year, month, day).ok_or(BadTime)?;
        let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
        Ok(Self(seconds * 1000 + fraction))
    }
}

impl TryFrom<String> for Timestamp {
    type Error = BadTime;

    fn try_from(text: String) -> Result<Self, BadTime> {
        text.parse()
    }
}

impl From<Timestamp> for String {
    fn from(at: Timestamp) -> Self {
        at.to_string()
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

fn number(digits: &[u8]) -> Result<u64, BadTime> {
    digits.iter().try_fold(0, |sum, digit| match digit {
        b'0'..=b'9' => Ok(sum * 10 + u64::from(digit - b'0')),
        _ => Err(BadTime),
    })
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn month_days(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Year, month and day of a count of days since 1970-01-01 (Howard Hinnant's `civil_from_days`).
fn civil(days: u64) -> (u64, u64, u64) {
    // Years are counted from 0000-03-01, so that the leap day is the last of its year.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

/// Days from 1970-01-01 to the given date, or `None` if there is no such date.
fn days_before(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || day < 1 || day > month_days(year, month) {
        return None;
    }
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let years = (year - 1970) * 365 + leaps(year - 1) - leaps(1969);
    let months: u64 = (1..month).map(|m| month_days(year, m)).sum();
    Some(years + months + day - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_times() {
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(
            Timestamp(951_782_400_001).to_string(),
            "2000-02-29T00:00:00.001Z"
        );
        assert_eq!(
            "2000-02-29T00:00:00Z".parse(),
            Ok(Timestamp(951_782_400_000))
        );
        assert_eq!("1970-01-01T00:00:00.5Z".parse(), Ok(Timestamp(500)));
        assert_eq!(Timestamp(u64::MAX).to_string(), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn bad_times() {
        for text in [
            "",
            "2001-02-29T00:00:00Z",
            "2001-13-01T00:00:00Z",
            "2001-01-01T00:00:00+01:00",
            "é",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(BadTime), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_time_reads_back(ms in 0..=LAST) {
            prop_assert_eq!(Timestamp(ms).to_string().parse(), Ok(Timestamp(ms)));
        }

        #[test]
        fn no_text_panics(text in ".{0,30}") {
            let _ = text.parse::<Timestamp>();
        }
    }
}
