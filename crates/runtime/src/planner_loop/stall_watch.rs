//! Sees from its own thread whether the thread that runs the planners still does.
//!
//! Each loop beats after each round, at least once a second. The watch looks once a second and counts its
//! looks since the last beat: so a process that was stopped as a whole, or a clock that jumps, is not
//! mistaken for a stall. After [`LOOKS_WITHOUT_BEAT`] looks the plans decay, once a look, by the law of a
//! failed planner; the first plan after the stall takes their place. A loop that ends by a panic outside its
//! planner is a stall for good.

use crate::clock::Clock;
use flashweir_core::Duration;
use flashweir_telemetry::{Happening, Warnings};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::Builder;

/// Between two looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Looks without a beat that make a stall: the kernel's gate, too, opens after three seconds without a sign
/// of life.
const LOOKS_WITHOUT_BEAT: u32 = 3;

/// Counts the rounds of one loop.
#[derive(Clone, Debug, Default)]
pub struct Beat(Arc<AtomicU64>);

impl Beat {
    /// A round is over.
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The plans of a loop, as far as another thread can reach them.
pub trait Unattended: Send {
    /// Owner of the plans, for the log.
    fn whose(&self) -> &'static str;
    /// The stall was noticed this long ago: publishes what the plans have become.
    fn decay(&mut self, age: Duration);
    /// The loop runs again and publishes by itself.
    fn attended(&mut self);
}

/// Finding of one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    /// Nothing to do.
    Well,
    /// The loop has stalled, for this long since the stall was noticed.
    Stalled(Duration),
    /// It had, and runs again.
    Resumed,
}

/// The beats of one loop, as the watch saw them.
#[derive(Debug, Default)]
struct Pulse {
    beats: u64,
    looks: u32,
}

impl Pulse {
    fn look(&mut self, beats: u64) -> Finding {
        if beats != self.beats {
            self.beats = beats;
            let had_stalled = std::mem::take(&mut self.looks) >= LOOKS_WITHOUT_BEAT;
            return if had_stalled { Finding::Resumed } else { Finding::Well };
        }
        self.looks = self.looks.saturating_add(1);
        match self.looks.checked_sub(LOOKS_WITHOUT_BEAT) {
            Some(since) => Finding::Stalled(LOOK_INTERVAL * since),
            None => Finding::Well,
        }
    }
}

/// A running watch; dropped, its thread ends.
#[derive(Debug)]
pub struct StallWatch {
    _stop: Sender<()>,
}

impl StallWatch {
    /// Watches these loops from now on.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(
        loops: Vec<(Beat, Box<dyn Unattended>)>,
        clock: Clock,
        warnings: Arc<Warnings>,
    ) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let mut watched: Vec<_> =
            loops.into_iter().map(|(beat, plans)| (Pulse::default(), beat, plans)).collect();
        // Not joined: it ends within its own look, and no other thread waits for it.
        Builder::new().name("stall-watch".to_owned()).spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK_INTERVAL) {
                for (pulse, beat, plans) in &mut watched {
                    let finding = pulse.look(beat.0.load(Ordering::Relaxed));
                    act(finding, &mut **plans, clock, &warnings);
                }
            }
        })?;
        Ok(Self { _stop: stop })
    }
}

fn act(finding: Finding, plans: &mut dyn Unattended, clock: Clock, warnings: &Warnings) {
    match finding {
        Finding::Well => {}
        Finding::Stalled(age) => {
            if age.is_zero() {
                let message = format_args!(
                    "the loop of {} has stalled: its last limit doubles each second until everything is admitted",
                    plans.whose()
                );
                warnings.warn(clock.now(), Happening::PlannerStalled, message);
            }
            plans.decay(age);
        }
        Finding::Resumed => {
            plans.attended();
            tracing::info!("the loop of {} runs again", plans.whose());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_TIME: Duration = Duration::ZERO;

    #[test]
    fn three_looks_without_a_beat_are_a_stall_and_a_beat_ends_it() {
        let mut pulse = Pulse::default();
        let looks = [1, 1, 1, 2, 2, 2, 2, 2, 3, 4];
        let found: Vec<Finding> = looks.into_iter().map(|beats| pulse.look(beats)).collect();
        let second = Duration::from_secs(1);
        assert_eq!(found[..6], [Finding::Well; 6], "a slow loop is no stall");
        assert_eq!(found[6..8], [Finding::Stalled(NO_TIME), Finding::Stalled(second)]);
        assert_eq!(found[8..], [Finding::Resumed, Finding::Well]);
    }

    #[test]
    fn a_loop_that_never_begins_has_stalled_too() {
        let mut pulse = Pulse::default();
        assert_eq!([(); 3].map(|()| pulse.look(0))[2], Finding::Stalled(NO_TIME));
    }

    struct Plans(Arc<AtomicU64>);

    impl Unattended for Plans {
        fn whose(&self) -> &'static str {
            "the planner of a test"
        }

        fn decay(&mut self, age: Duration) {
            self.0.store(1 + age.as_secs(), Ordering::Relaxed);
        }

        fn attended(&mut self) {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_stall_is_logged_once_and_its_plans_decay_until_it_is_over() {
        let (state, warnings) = (Arc::new(AtomicU64::new(0)), Warnings::default());
        let mut plans = Plans(state.clone());
        let mut pulse = Pulse::default();
        let mut look = |beats| {
            let finding = pulse.look(beats);
            act(finding, &mut plans, Clock::start(), &warnings);
            state.load(Ordering::Relaxed)
        };
        assert_eq!([1, 1, 1, 1, 1, 1].map(&mut look), [0, 0, 0, 1, 2, 3]);
        assert_eq!(look(2), 0);
        assert_eq!(warnings.value(Happening::PlannerStalled), 1);
    }
}
