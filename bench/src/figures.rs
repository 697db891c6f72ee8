//! Samples, their median and 99th percentile, and targets.

use std::time::{Duration, Instant};

/// How long one series of samples may go on; what is there by then counts.
const SERIES: Duration = Duration::from_secs(20);

/// One line of the table.
pub struct Row {
    /// What was measured.
    pub name: String,
    /// What came out.
    pub figure: Figure,
    /// What it has to reach, if anything was promised.
    pub target: Option<Target>,
}

/// What came out of a measurement.
pub enum Figure {
    /// Times, one a sample.
    Times(Samples),
    /// One number and its unit.
    Number(f64, &'static str),
}

/// What a figure has to reach.
pub enum Target {
    /// The median, or the number, lies below this: seconds for times.
    Below(f64),
    /// The number is at least this.
    AtLeast(f64),
}

impl Row {
    /// A row of times.
    pub fn times(name: impl Into<String>, samples: Samples) -> Self {
        Self {
            name: name.into(),
            figure: Figure::Times(samples),
            target: None,
        }
    }

    /// A row of one number.
    pub fn number(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self {
            name: name.into(),
            figure: Figure::Number(value, unit),
            target: None,
        }
    }

    /// The same with a promise that the median lies below `limit`.
    pub fn below(self, limit: Duration) -> Self {
        Self {
            target: Some(Target::Below(limit.as_secs_f64())),
            ..self
        }
    }

    /// The same with a promise that the number lies below `limit`.
    pub fn less_than(self, limit: f64) -> Self {
        Self {
            target: Some(Target::Below(limit)),
            ..self
        }
    }

    /// The same with a promise that the number is at least `limit`.
    pub fn at_least(self, limit: f64) -> Self {
        Self {
            target: Some(Target::AtLeast(limit)),
            ..self
        }
    }

    /// Whether the target is met; `None` without one.
    pub fn is_met(&self) -> Option<bool> {
        let value = match &self.figure {
            Figure::Times(samples) => samples.median().as_secs_f64(),
            Figure::Number(value, _) => *value,
        };
        self.target.as_ref().map(|target| match target {
            Target::Below(limit) => value < *limit,
            Target::AtLeast(limit) => value >= *limit,
        })
    }
}

/// Durations of the same thing.
#[derive(Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Takes `count` samples, or as many as fit in the time that a series has.
    ///
    /// # Errors
    /// The first sample that could not be taken.
    pub fn take<E>(
        count: usize,
        mut sample: impl FnMut() -> Result<Duration, E>,
    ) -> Result<Self, E> {
        let started = Instant::now();
        let mut samples = Vec::with_capacity(count);
        while samples.len() < count && (samples.is_empty() || started.elapsed() < SERIES) {
            samples.push(sample()?);
        }
        Ok(Self(samples))
    }

    /// Adds one sample.
    pub fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The sample in the middle.
    pub fn median(&self) -> Duration {
        self.at(0.5)
    }

    /// The sample that 99 of 100 do not exceed; of fewer than 100, the longest.
    pub fn p99(&self) -> Duration {
        self.at(0.99)
    }

    /// The nearest rank; zero if there are no samples.
    fn at(&self, share: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() as f64 * share).ceil() as usize;
        sorted
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or_default()
    }
}

/// The number in the middle of some; zero if there are none.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(millis: impl IntoIterator<Item = u64>) -> Samples {
        Samples(millis.into_iter().map(Duration::from_millis).collect())
    }

    #[test]
    fn ranks() {
        let hundred = samples((1..=100).rev());
        assert_eq!(hundred.median(), Duration::from_millis(50));
        assert_eq!(hundred.p99(), Duration::from_millis(99));
        assert_eq!(samples([3, 1, 2]).p99(), Duration::from_millis(3));
        assert_eq!(samples([]).median(), Duration::ZERO);
    }

    #[test]
    fn targets() {
        let row = Row::times("click", samples([1, 2, 3]));
        assert_eq!(row.is_met(), None);
        assert_eq!(row.below(Duration::from_millis(3)).is_met(), Some(true));
        assert_eq!(
            Row::number("ratio", 0.5, "").at_least(0.55).is_met(),
            Some(false)
        );
    }
}
