//! Every deadline of a desktop by name, and the one table that keeps them.

use crate::time::Moment;

/// A deadline. Each runs at most once at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Timer {
    /// A takeover has waited long enough for the agents' permits: it fails.
    Drain,
    /// The lease was not renewed: it ends.
    Ttl,
    /// The person has done nothing for too long: the lease ends.
    Idle,
    /// The lease has lasted as long as it was meant to at most: it ends.
    Maximum,
    /// Nobody came back for a parked lease: it ends.
    Linger,
    /// The display has not shown in time that all input is flushed: the
    /// desktop is shown as paused.
    Flush,
    /// The idle limit is near: the person is warned.
    IdleWarning,
    /// The maximum is near: the person is warned.
    MaximumWarning,
}

impl Timer {
    /// In the order in which the table keeps them.
    pub(crate) const ALL: [Self; 8] = [
        Self::Drain,
        Self::Ttl,
        Self::Idle,
        Self::Maximum,
        Self::Linger,
        Self::Flush,
        Self::IdleWarning,
        Self::MaximumWarning,
    ];

    /// The deadlines that belong to a live lease and end with it.
    const LEASE: [Self; 6] = [
        Self::Ttl,
        Self::Idle,
        Self::Maximum,
        Self::Linger,
        Self::IdleWarning,
        Self::MaximumWarning,
    ];

    /// The deadlines that end a live lease.
    const ENDING: [Self; 4] = [Self::Ttl, Self::Idle, Self::Maximum, Self::Linger];
}

/// When each timer fires, if it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Timers([Option<Moment>; Timer::ALL.len()]);

impl Timers {
    pub(crate) fn set(&mut self, timer: Timer, at: Moment) {
        self.0[timer as usize] = Some(at);
    }

    pub(crate) fn stop(&mut self, timer: Timer) {
        self.0[timer as usize] = None;
    }

    pub(crate) fn get(&self, timer: Timer) -> Option<Moment> {
        self.0[timer as usize]
    }

    /// Stops everything that belongs to a live lease.
    pub(crate) fn stop_lease(&mut self) {
        for timer in Timer::LEASE {
            self.stop(timer);
        }
    }

    /// The first instant at which some timer fires.
    pub(crate) fn earliest(&self) -> Option<Moment> {
        self.0.iter().flatten().min().copied()
    }

    /// The first instant at which the live lease ends unless something changes.
    pub(crate) fn lease_end(&self) -> Option<Moment> {
        Timer::ENDING.iter().filter_map(|&t| self.get(t)).min()
    }

    /// Takes the timer that fired first, if any has fired by `now`.
    pub(crate) fn take_due(&mut self, now: Moment) -> Option<(Timer, Moment)> {
        let (at, timer) = Timer::ALL
            .into_iter()
            .filter_map(|timer| Some((self.get(timer)?, timer)))
            .filter(|(at, _)| *at <= now)
            .min_by_key(|(at, _)| *at)?;
        self.stop(timer);
        Some((timer, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_a_place_for_each_timer() {
        for (place, timer) in Timer::ALL.into_iter().enumerate() {
            assert_eq!(timer as usize, place);
        }
    }

    #[test]
    fn fires_in_order_of_time() {
        let mut timers = Timers::default();
        timers.set(Timer::Ttl, Moment::from_nanos(30));
        timers.set(Timer::Maximum, Moment::from_nanos(10));
        timers.set(Timer::Flush, Moment::from_nanos(40));
        let now = Moment::from_nanos(30);
        assert_eq!(
            timers.take_due(now),
            Some((Timer::Maximum, Moment::from_nanos(10)))
        );
        assert_eq!(
            timers.take_due(now),
            Some((Timer::Ttl, Moment::from_nanos(30)))
        );
        assert_eq!(timers.take_due(now), None);
        assert_eq!(timers.earliest(), Some(Moment::from_nanos(40)));
    }
}
