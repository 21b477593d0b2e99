//! The crowd in a schedule.

use flashweir_workload::{ArrivalProcess, Schedule};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Beginning and end of the crowd in the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrowdWindow {
    /// Seconds from the start of the run.
    pub from_s: f64,
    /// The same; people still come afterwards, as many as before.
    pub to_s: f64,
}

/// Moments at which the schedule's rate is looked at.
const SAMPLES: usize = 4_000;
/// A rate so much above the quiet one is a crowd.
const CROWD_OVER_QUIET: f64 = 1.5;

impl CrowdWindow {
    /// The crowd of a schedule: from the first to the last moment at which people come at more than one and a
    /// half times the rate of the beginning; `None` where that never is, or where it lasts to the end.
    #[must_use]
    pub fn of(schedule: &Schedule) -> Option<Self> {
        let length = schedule.length();
        // A crowd shorter than this is none that a report by the second could show.
        let step = (length / SAMPLES as u32).max(Duration::from_millis(1));
        let mut rates = vec![0.0; SAMPLES];
        schedule.streams().iter().for_each(|stream| add_rates(&stream.arrivals, step, &mut rates));
        let quiet = rates[0];
        let is_crowded = |rate: &f64| *rate > quiet * CROWD_OVER_QUIET;
        let from = step * u32::try_from(rates.iter().position(is_crowded)?).ok()?;
        let to = step * u32::try_from(rates.iter().rposition(is_crowded)? + 1).ok()?;
        (quiet > 0.0 && to < length).then_some(Self { from_s: from.as_secs_f64(), to_s: to.as_secs_f64() })
    }
}

/// Adds the rates of a process at the beginning of every step; given moments have no rate, so they never make
/// a crowd by themselves.
fn add_rates(process: &ArrivalProcess, step: Duration, rates: &mut [f64]) {
    let Some(profile) = process.profile() else { return };
    let mut segments = profile.segments().iter();
    let mut current = segments.next();
    let mut begun = Duration::ZERO;
    for (rate, n) in rates.iter_mut().zip(0..) {
        while let Some(segment) = current
            && begun + segment.length <= step * n
        {
            begun += segment.length;
            current = segments.next();
        }
        *rate += current.map_or(0.0, |segment| segment.rate_after(step * n - begun));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_workload::RateProfile;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_crowd_is_read_from_the_schedule() {
        let window =
            |profile: RateProfile| CrowdWindow::of(&Schedule::one(ArrivalProcess::Poisson(profile), 1));
        let step = RateProfile::step(50.0, 500.0, 10 * SECOND, 20 * SECOND).unwrap();
        assert_eq!(window(step.clone()), None, "it never leaves");
        let back = step.then(RateProfile::constant(50.0, 10 * SECOND).unwrap());
        let crowd = window(back).unwrap();
        assert!((crowd.from_s - 10.0).abs() < 0.02 && (crowd.to_s - 20.0).abs() < 0.02, "{crowd:?}");
        assert_eq!(window(RateProfile::constant(50.0, SECOND).unwrap()), None);
        let from_nobody = RateProfile::step(0.0, 50.0, SECOND, 2 * SECOND).unwrap();
        assert_eq!(window(from_nobody.then(RateProfile::constant(0.0, SECOND).unwrap())), None);
    }
}
