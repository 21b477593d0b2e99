//! Waking at a moment, to some tens of microseconds: tokio's own timer counts whole milliseconds.

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A kernel timer that one task waits on.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: AsyncFd<OwnedFd>,
}

impl Alarm {
    /// Must be called inside the runtime that will wait on it.
    #[expect(
        deprecated,
        reason = "sound for an OwnedFd, which stays open and the same; the replacement needs unsafe"
    )]
    pub(crate) fn new() -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { timer: AsyncFd::with_interest(timer, Interest::READABLE)? })
    }

    /// Returns at the deadline or soon after; at once if it has passed.
    pub(crate) async fn wait_until(&mut self, deadline: Instant) -> io::Result<()> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.set(left)?;
            let mut ready = self.timer.readable().await?;
            let mut expirations = [0; 8];
            match rustix::io::read(self.timer.get_ref(), &mut expirations) {
                Ok(_) | Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn set(&self, left: Duration) -> io::Result<()> {
        let timer = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                // A run lasts at most a week, so the seconds fit.
                tv_sec: left.as_secs() as _,
                tv_nsec: left.subsec_nanos().into(),
            },
        };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &timer)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waiting is what is tested, so this test waits, for five milliseconds.
    #[tokio::test]
    async fn it_rings_at_the_deadline_and_not_before() {
        let mut alarm = Alarm::new().unwrap();
        let deadline = Instant::now() + Duration::from_millis(5);
        alarm.wait_until(deadline).await.unwrap();
        assert!(Instant::now() >= deadline);
        alarm.wait_until(deadline).await.unwrap();
    }
}
