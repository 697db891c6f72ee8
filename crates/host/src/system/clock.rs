//! The one clock that decides about power: `CLOCK_BOOTTIME`, which goes on during suspend and does
//! not move when somebody sets the wall clock.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime};

use handover_control::Moment;
use handover_protocol::Timestamp;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// The present moment on `CLOCK_BOOTTIME`.
pub fn now() -> Moment {
    Moment::from_nanos(boot_nanos())
}

/// Nanoseconds since boot, time in suspend included.
pub fn boot_nanos() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    // Neither part is ever negative on this clock.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The wall clock, for people and for the record; nothing is decided by it.
pub fn wall() -> Timestamp {
    Timestamp::from_unix(
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

/// What the wall clock showed so long ago, if nobody has set it since.
pub fn wall_ago(duration: Duration) -> Timestamp {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_unix(now.saturating_sub(duration))
}

/// A timer on `CLOCK_BOOTTIME`. Tokio's own timers use `CLOCK_MONOTONIC`, which stands still while
/// the machine is suspended: a lease would live on by the length of the sleep.
///
/// Use in `select!`: set it to the next deadline, then wait for [`BootTimer::expired`].
#[derive(Debug)]
pub struct BootTimer {
    fd: AsyncFd<OwnedFd>,
}

impl BootTimer {
    /// A timer that is not set. Must be called within a tokio runtime.
    pub fn new() -> io::Result<Self> {
        let fd = timerfd_create(
            TimerfdClockId::Boottime,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        // SAFETY: `OwnedFd` always answers the same descriptor and closes it only when it is dropped,
        // which `AsyncFd` does after it has removed it from the reactor.
        let fd = unsafe { AsyncFd::register(fd) }?;
        Ok(Self { fd })
    }

    /// Sets the timer to `deadline`, replacing what was set; a past deadline expires at once,
    /// `None` never. An expiry that nobody has waited for yet is forgotten.
    pub fn set(&mut self, deadline: Option<Moment>) -> io::Result<()> {
        let value = match deadline {
            None => Timespec::default(),
            // A value of zero would disarm the timer; one nanosecond after boot is as past.
            Some(moment) => timespec(moment.as_nanos().max(1)),
        };
        timerfd_settime(
            self.fd.get_ref(),
            TimerfdTimerFlags::ABSTIME,
            &Itimerspec {
                it_interval: Timespec::default(),
                it_value: value,
            },
        )?;
        Ok(())
    }

    /// Sets the timer to `after` from now.
    pub fn set_after(&mut self, after: Duration) -> io::Result<()> {
        self.set(Some(now() + after))
    }

    /// Waits until the deadline has passed; the timer is then not set any more. With no deadline it
    /// waits for ever. Dropping the future loses nothing.
    pub async fn expired(&self) -> io::Result<()> {
        loop {
            let mut guard = self.fd.readable().await?;
            let mut count = [0u8; 8];
            match guard.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut count)?)) {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(error),
                // Set anew since it became readable: wait for the new deadline.
                Err(_would_block) => {}
            }
        }
    }
}

fn timespec(nanos: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (nanos % 1_000_000_000) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn expires_at_its_deadline_and_once() {
        let mut timer = BootTimer::new().unwrap();
        let start = now();
        timer.set_after(Duration::from_millis(20)).unwrap();
        timer.expired().await.unwrap();
        assert!(now() >= start + Duration::from_millis(20));
        let again = tokio::time::timeout(Duration::from_millis(30), timer.expired()).await;
        assert!(again.is_err(), "a timer that expired is not set any more");
    }

    #[tokio::test]
    async fn a_past_deadline_expires_at_once_and_none_never() {
        let mut timer = BootTimer::new().unwrap();
        timer.set(Some(Moment::from_nanos(0))).unwrap();
        timer.expired().await.unwrap();
        timer.set(Some(Moment::from_nanos(0))).unwrap();
        timer.set(None).unwrap();
        let unset = tokio::time::timeout(Duration::from_millis(30), timer.expired()).await;
        assert!(unset.is_err());
    }
}
