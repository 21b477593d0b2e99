//! The crowd that comes twice: when each person arrives, and when there are more of them than can be served.

use flashweir_workload::{ArrivalProcess, ProfileError, RateProfile, crowd};
use std::ops::Range;
use std::time::Duration;

/// Quiet time before the crowd: enough to learn the normal load.
pub(crate) const QUIET: Duration = Duration::from_secs(6);
/// The World Cup evening, squeezed into this long.
const EVENING: Duration = Duration::from_secs(28);
/// Quiet time after the crowd: enough to see the limit go away.
const TAIL: Duration = Duration::from_secs(6);
/// A rise of the scheduled rate above the capacity counts as the crowd's beginning if it lasts this long.
const FOR_GOOD: Duration = Duration::from_secs(1);

/// One crowd, fixed before anything runs.
#[derive(Debug)]
pub(crate) struct Crowd {
    profile: RateProfile,
    /// Arrival time of each client, from the start of the run.
    pub(crate) schedule: Vec<Duration>,
    /// While the scheduled rate exceeds the capacity; `None` if it never does for long.
    pub(crate) overload: Option<Range<Duration>>,
}

impl Crowd {
    /// A crowd whose busiest moment is `multiple` times the capacity.
    ///
    /// # Errors
    /// A capacity or multiple that is not a number above zero.
    pub(crate) fn new(capacity_rps: f64, multiple: f64, seed: u64) -> Result<Self, ProfileError> {
        let shape = crowd::world_cup_semi_final();
        let squeeze = shape.length().as_secs_f64() / EVENING.as_secs_f64();
        let evening = shape.squeeze(squeeze)?.peak(capacity_rps * multiple)?;
        let quiet_rate =
            evening.segments().iter().map(|segment| segment.from_per_s).fold(f64::INFINITY, f64::min);
        let profile = RateProfile::constant(quiet_rate, QUIET)?
            .then(evening)
            .then(RateProfile::constant(quiet_rate, TAIL)?);
        let overload = overload(&profile, capacity_rps);
        let schedule = ArrivalProcess::Poisson(profile.clone()).moments(seed).collect();
        Ok(Self { profile, schedule, overload })
    }

    /// Length of the whole run.
    pub(crate) fn length(&self) -> Duration {
        self.profile.length()
    }

    /// Phase of the run at a moment.
    pub(crate) fn phase(&self, at: Duration) -> &'static str {
        match &self.overload {
            Some(overload) if overload.contains(&at) => "the crowd is here",
            Some(overload) if at < overload.start && at >= QUIET => "people are coming",
            Some(overload) if at >= overload.end => "people have gone",
            _ => "quiet",
        }
    }
}

/// From the beginning of the first stretch above the capacity that lasts to the end of the last stretch above
/// it.
fn overload(profile: &RateProfile, capacity_rps: f64) -> Option<Range<Duration>> {
    let stretches = stretches_above(profile, capacity_rps);
    let begins = stretches.iter().find(|stretch| stretch.end - stretch.start >= FOR_GOOD)?.start;
    Some(begins..stretches.last()?.end)
}

/// The times in which the scheduled rate is above `rate_per_s`, adjacent ones joined.
fn stretches_above(profile: &RateProfile, rate_per_s: f64) -> Vec<Range<Duration>> {
    let mut stretches: Vec<Range<Duration>> = Vec::new();
    let mut start = Duration::ZERO;
    for segment in profile.segments() {
        let end = start + segment.length;
        if segment.from_per_s > rate_per_s {
            match stretches.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => stretches.push(start..end),
            }
        }
        start = end;
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn overload_of(rates: &[f64]) -> Option<Range<Duration>> {
        overload(&RateProfile::from_bins(SECOND / 2, rates.iter().copied()).unwrap(), 100.0)
    }

    #[test]
    fn the_crowd_begins_when_its_rate_stays_above_the_capacity_and_ends_when_it_is_below_for_good() {
        assert_eq!(overload_of(&[50.0, 150.0, 150.0, 200.0, 100.0, 50.0]), Some(SECOND / 2..SECOND * 2));
        // A blip before does not begin it; a dip within and a blip after do not end it.
        assert_eq!(overload_of(&[150.0, 9.0, 150.0, 150.0, 9.0, 150.0, 9.0]), Some(SECOND..SECOND * 3));
        assert_eq!(overload_of(&[50.0, 100.0, 101.0, 50.0]), None);
    }

    #[test]
    fn the_same_seed_is_the_same_crowd_and_its_peak_is_the_multiple_of_the_capacity() {
        let crowd = Crowd::new(200.0, 5.0, 7).unwrap();
        assert_eq!(crowd.schedule, Crowd::new(200.0, 5.0, 7).unwrap().schedule);
        assert_eq!(crowd.length().as_secs_f64().round() as u64, 40);
        assert!((crowd.profile.peak_rate() - 1000.0).abs() < 1e-6);
        let overload = crowd.overload.clone().unwrap();
        assert!(overload.start > QUIET && overload.end < QUIET + EVENING, "{overload:?}");
        let phases = [Duration::ZERO, QUIET + SECOND, overload.start, overload.end].map(|at| crowd.phase(at));
        assert_eq!(phases, ["quiet", "people are coming", "the crowd is here", "people have gone"]);
    }

    #[test]
    fn a_crowd_that_fits_overloads_nothing() {
        let crowd = Crowd::new(200.0, 0.9, 7).unwrap();
        assert_eq!(crowd.overload, None);
        assert_eq!(crowd.phase(SECOND), "quiet");
        assert!(Crowd::new(0.0, 5.0, 7).is_err());
    }
}
