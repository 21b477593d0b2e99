//! Use of the origin's time while the crowd was there, and whether the machine's speed changed meanwhile.

use flashweir_core::measure::Useful;
use flashweir_testbed::origin::account::{OriginMeter, Ruler};
use serde::Serialize;
use std::ops::Range;
use std::time::Duration;

/// A smaller change of the machine's speed changes no conclusion.
const SPEED_CHANGE_NOTED: f64 = 0.10;

/// The origin's time during one visit; `None` where it could not be read or nothing was completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct OriginTime {
    /// Share of the crowd's time in which the origin was busy, times the share of its completions that were
    /// in time.
    pub(crate) useful: Option<f64>,
    /// The first factor: running, or runnable and waiting for the processor, over wall time.
    pub(crate) busy_share: Option<f64>,
    /// The second factor: answers that people got within the target over requests the origin completed.
    pub(crate) in_time_share: Option<f64>,
    /// Processor time of a page from the start of the visit to the crowd's beginning, milliseconds.
    pub(crate) page_ms_before: Option<f64>,
    /// The same while the crowd was there.
    pub(crate) page_ms_during: Option<f64>,
    /// Reason for a missing `useful`.
    pub(crate) useful_not_measured: Option<String>,
}

/// Reads the origin's account at the start of a visit, when the crowd begins and when it has ended.
pub(crate) struct OriginWatch(Option<Ruler>);

impl OriginWatch {
    /// Of an origin that a crowd overloads for `overload`, if it does.
    pub(crate) fn new(meter: OriginMeter, overload: Option<&Range<Duration>>) -> Self {
        Self(overload.map(|crowd| Ruler::new(meter, [Duration::ZERO, crowd.start, crowd.end])))
    }

    /// To be called again and again during the visit; `in_time` answers were in time so far.
    pub(crate) fn look(&mut self, elapsed: Duration, in_time: u64) {
        if let Some(ruler) = &mut self.0 {
            ruler.look(elapsed, in_time);
        }
    }

    /// The use of its time.
    pub(crate) fn finish(self) -> OriginTime {
        let Some(ruler) = self.0 else { return OriginTime::without("the crowd never exceeded the capacity") };
        match (ruler.useful(0, 1), ruler.useful(1, 2)) {
            (Ok(before), Ok(during)) => OriginTime::new(&before, &during),
            (Err(error), _) | (_, Err(error)) => OriginTime::without(&error.to_string()),
        }
    }
}

impl OriginTime {
    pub(crate) fn new(before: &Useful, during: &Useful) -> Self {
        Self {
            useful: Some(during.useful()),
            busy_share: Some(during.busy),
            in_time_share: Some(during.in_time),
            page_ms_before: before.processor_ms,
            page_ms_during: during.processor_ms,
            useful_not_measured: None,
        }
    }

    fn without(why: &str) -> Self {
        Self { useful_not_measured: Some(why.to_owned()), ..Self::default() }
    }

    /// Reason to doubt the numbers of this visit, in a sentence.
    pub(crate) fn note(&self, visit: &str) -> Option<String> {
        if let Some(why) = &self.useful_not_measured {
            return Some(format!("Useful was not measured {visit}: {why}."));
        }
        let (before, during) = self.page_ms_before.zip(self.page_ms_during)?;
        let change = during / before - 1.0;
        (change.abs() > SPEED_CHANGE_NOTED).then(|| {
            format!(
                "The machine's speed changed {visit}: a page took {before:.2} ms of the origin's processor time before \
                 the crowd and {during:.2} ms during it ({:+.0} %). Goodput / capacity may be off by as much; useful is not.",
                change * 100.0
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn useful(busy: f64, in_time: f64, page_ms: f64) -> Useful {
        Useful { busy, in_time, processor_ms: Some(page_ms) }
    }

    #[test]
    fn a_change_of_speed_by_more_than_a_tenth_is_noted() {
        let during = |page_ms| OriginTime::new(&useful(0.1, 1.0, 5.0), &useful(0.9, 0.8, page_ms));
        assert_eq!(during(5.0).useful, Some(0.9 * 0.8));
        for unchanged in [4.51, 5.0, 5.49] {
            assert_eq!(during(unchanged).note("with Flashweir"), None);
        }
        let note = during(7.0).note("with Flashweir").unwrap();
        assert!(note.contains("with Flashweir: a page took 5.00 ms") && note.contains("+40 %"), "{note}");
        assert!(during(4.0).note("").unwrap().contains("-20 %"));
    }

    #[test]
    fn what_was_not_measured_says_why() {
        let unreachable = OriginMeter::new(u32::MAX, ([127, 0, 0, 1], 9).into());
        let fits = OriginWatch::new(unreachable.clone(), None).finish();
        assert!(fits.note("with Flashweir").unwrap().contains("never exceeded the capacity"));
        let mut watch = OriginWatch::new(unreachable, Some(&(Duration::ZERO..Duration::from_secs(1))));
        watch.look(Duration::ZERO, 0);
        let gone = watch.finish();
        assert_eq!(gone.useful, None);
        assert!(gone.note("").unwrap().contains("127.0.0.1:9"), "{gone:?}");
    }
}
