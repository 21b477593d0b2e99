//! Waking at a moment, to some tens of microseconds: tokio's own timer counts whole milliseconds.

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A kernel timer that one task waits on and others may bring forward.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: AsyncFd<OwnedFd>,
    /// Time at which it rings, while the task waits. Only its own thread locks it, never across an await.
    set_to: Mutex<Option<Instant>>,
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
        let timer = AsyncFd::with_interest(timer, Interest::READABLE)?;
        Ok(Self { timer, set_to: Mutex::default() })
    }

    /// Returns at the deadline or at the moment it was brought forward to, or soon after; at once if that has
    /// passed. Only one task may wait.
    pub(crate) async fn wait_until(&self, deadline: Instant) -> io::Result<()> {
        self.set(deadline)?;
        loop {
            let deadline = self.set_to().unwrap_or(deadline);
            if deadline <= Instant::now() {
                *self.set_to() = None;
                return Ok(());
            }
            let mut ready = self.timer.readable().await?;
            let mut expirations = [0; 8];
            match rustix::io::read(self.timer.get_ref(), &mut expirations) {
                Ok(_) | Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Makes a task that waits wake no later than at the deadline.
    pub(crate) fn bring_forward(&self, deadline: Instant) -> io::Result<()> {
        let later = self.set_to().is_some_and(|set_to| deadline < set_to);
        if later { self.set(deadline) } else { Ok(()) }
    }

    fn set(&self, deadline: Instant) -> io::Result<()> {
        // A timer set to zero would be switched off.
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let timer = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                // A run lasts at most a week, so the seconds fit.
                tv_sec: left.as_secs() as _,
                tv_nsec: left.subsec_nanos().into(),
            },
        };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &timer)?;
        *self.set_to() = Some(deadline);
        Ok(())
    }

    fn set_to(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.set_to.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waiting is what is tested, so this test waits, for five milliseconds.
    #[tokio::test]
    async fn it_rings_at_the_deadline_and_not_before() {
        let alarm = Alarm::new().unwrap();
        let deadline = Instant::now() + Duration::from_millis(5);
        alarm.wait_until(deadline).await.unwrap();
        assert!(Instant::now() >= deadline);
        alarm.wait_until(deadline).await.unwrap();
    }

    #[tokio::test]
    async fn it_can_be_brought_forward_and_not_put_off() {
        let alarm = Alarm::new().unwrap();
        let started = Instant::now();
        let hour = Duration::from_secs(3600);
        let (waited, ()) = tokio::join!(alarm.wait_until(started + hour), async {
            alarm.bring_forward(started + Duration::from_millis(2)).unwrap();
            alarm.bring_forward(started + Duration::from_secs(60)).unwrap();
        });
        waited.unwrap();
        assert!((Duration::from_millis(2)..hour / 60).contains(&started.elapsed()));
    }
}
