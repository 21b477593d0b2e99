//! Silence: requests hold places and none completes, for longer than chance explains.
//!
//! Either the origin hangs, or all places are held by requests that take long, polls on the URL of pages for
//! example. Time does not tell one from the other, other requests do: those that have been in flight for four
//! targets give their places to as many others, once for each silence, and hold none while they go on. An
//! origin that hangs has at most twice as many requests then.
//!
//! Silence: no completion for longer than four targets and eight times the usual time between two. Cost: O(1)
//! for each tick.

/// Time since the last completion, beside the usual one.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// Time with requests in flight since the last completion, seconds.
    silent_s: f64,
    /// The same at completions, on average.
    gap_s: f64,
    /// Exempt requests in flight before the last silence.
    exempt_before: u32,
}

impl Silence {
    /// Takes a tick of `span_s` with requests in flight that hold places, completions of such ones, and
    /// `exempt` ones. Returns true in a silence.
    pub(crate) fn take(
        &mut self,
        (in_flight, completed, exempt): (f64, f64, u32),
        span_s: f64,
        target_s: f64,
    ) -> bool {
        if in_flight > 0.0 {
            self.silent_s += span_s;
        }
        if completed > 0.0 {
            let part = 1.0 - libm::exp(-completed / GAPS);
            self.gap_s += (self.silent_s / completed - self.gap_s) * part;
        }
        if completed > 0.0 || in_flight <= 0.0 {
            self.silent_s = 0.0;
        }
        let is_silent = self.silent_s > f64::max(BLIND_TARGETS * target_s, GAPS_MAX * self.gap_s);
        if !is_silent {
            self.exempt_before = exempt;
        }
        is_silent
    }

    /// Requests that may be exempt in a silence: as many more as hold places.
    pub(crate) fn exempt_max(&self, places: u32) -> u32 {
        self.exempt_before.saturating_add(places)
    }
}

/// Age, in targets, from which on a request does not keep others out although none has come back meanwhile; a
/// lower one may be the service's usual time.
pub(crate) const BLIND_TARGETS: f64 = 4.0;
/// Completions over which the time between two is averaged.
const GAPS: f64 = 16.0;
/// Such times without a completion, which chance explains once in e⁸.
const GAPS_MAX: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks of 20 ms with eight requests in flight, of which `completed` complete in each, until a silence.
    fn silent_after_s(silence: &mut Silence, completed: f64, ticks_max: u32) -> Option<f64> {
        (1..=ticks_max)
            .find(|_| silence.take((8.0, completed, 3), 0.02, 1.0))
            .map(|ticks| 0.02 * f64::from(ticks))
    }

    #[test]
    fn four_targets_without_a_completion_are_a_silence() {
        let mut silence = Silence::default();
        assert_eq!(silent_after_s(&mut silence, 1.0, 1_000), None);
        let after_s = silent_after_s(&mut silence, 0.0, 1_000).expect("a silence");
        assert!((4.0..4.1).contains(&after_s), "{after_s}");
        assert!(silence.take((8.0, 0.0, 11), 0.02, 1.0));
        assert_eq!(silence.exempt_max(8), 11, "those of before and as many as there are places");
        assert!(!silence.take((8.0, 1.0, 11), 0.02, 1.0), "a completion ends it");
    }

    #[test]
    fn eight_times_the_usual_time_between_completions_are_no_silence() {
        let mut silence = Silence::default();
        for _ in 0..100 {
            assert_eq!(silent_after_s(&mut silence, 0.0, 99), None);
            silence.take((8.0, 1.0, 3), 0.02, 1.0);
        }
        let after_s = silent_after_s(&mut silence, 0.0, 10_000).expect("a silence");
        assert!((15.9..16.1).contains(&after_s), "{after_s}");
    }

    #[test]
    fn nothing_in_flight_is_no_silence() {
        let mut silence = Silence::default();
        assert!((0..1_000).all(|_| !silence.take((0.0, 0.0, 0), 0.02, 1.0)));
    }
}
