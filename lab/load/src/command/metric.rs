//! The figures of a result by name: what assertions speak of and comparisons show.
//!
//! | Names | What |
//! |---|---|
//! | `offered`, `completed`, … | counts, as in the JSON; those of connections of the whole run only |
//! | `goodput_ratio`, `completed_ratio`, `abandoned_ratio` | shares of requests (`unique_offered`): each ends so at most once |
//! | `refused_ratio`, `timed_out_ratio`, `error_ratio` | shares of tries (`offered`): a request can meet several |
//! | `offered_rps`, `completed_rps`, `goodput_rps`, `body_bytes_per_s` | a second of the schedule, or of the part of it that an interrupted run did |
//! | `retry_amplification` | tries for each request |
//! | `p50` … `mean`, `refusal_p99`, `ttfb_p99`, `served_p99`, `lag_p99`, … | points of distributions |
//! | `recovery` | from the end of the crowd until the target is itself again, of the whole run only |

mod ledger;
mod name;
mod quantity;
mod times;

pub(super) use ledger::{LEDGER, LedgerMetric, RUN, RunMetric, SHARES, Share};
pub(super) use name::metric;
pub(super) use quantity::{Quantity, written};
pub(super) use times::{POINTS, Point, TIMES, Times};

use crate::{LoadResult, Tally};

/// One figure of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Metric {
    /// A number of the ledger of all classes or of one class.
    Ledger(&'static LedgerMetric),
    /// A number that only the whole run has.
    Run(&'static RunMetric),
    /// A point of a distribution of times.
    Point(&'static Times, &'static Point),
    /// Recovery time of the target after the crowd.
    Recovery,
}

impl Metric {
    /// Its name, the shortest where it has several.
    pub(super) fn name(self) -> String {
        match self {
            Self::Ledger(metric) => metric.name.to_owned(),
            Self::Run(metric) => metric.name.to_owned(),
            Self::Point(times, point) => times.point_name(point),
            Self::Recovery => name::RECOVERY.to_owned(),
        }
    }

    /// Kind of the number.
    pub(super) fn quantity(self) -> Quantity {
        match self {
            Self::Ledger(metric) => metric.quantity,
            Self::Run(_) => Quantity::Count,
            Self::Point(..) | Self::Recovery => Quantity::Time,
        }
    }

    /// Returns whether a class has it too.
    pub(super) fn is_of_classes(self) -> bool {
        matches!(self, Self::Ledger(_) | Self::Point(..))
    }

    /// Its value for all classes: times in milliseconds, infinity for never.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn of_run(self, result: &LoadResult) -> Result<f64, &'static str> {
        match self {
            Self::Run(metric) => Ok((metric.read)(result) as f64),
            Self::Recovery => recovery_ms(result),
            Self::Ledger(_) | Self::Point(..) => self.of_tally(&result.totals, seconds(result)),
        }
    }

    /// Its value in one ledger of a run of `seconds`.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn of_tally(self, tally: &Tally, seconds: f64) -> Result<f64, &'static str> {
        let value = match self {
            Self::Ledger(metric) => (metric.read)(tally, seconds),
            Self::Point(times, point) => times.of(tally, point),
            Self::Run(_) | Self::Recovery => return Err("it exists for the whole run only"),
        };
        value.ok_or("nothing was measured")
    }
}

/// The seconds that rates of a result count over: an interrupted run did only a part of its schedule.
pub(super) fn seconds(result: &LoadResult) -> f64 {
    let run = &result.run;
    if run.interrupted { run.length_s.min(run.duration_s) } else { run.length_s }
}

fn recovery_ms(result: &LoadResult) -> Result<f64, &'static str> {
    match (&result.crowd, &result.recovery) {
        (None, _) => Err("the schedule has no crowd to recover from (--crowd-window can tell of one)"),
        (_, None) => {
            Err("too little was seen before or after the crowd, or too little served before, to judge by")
        }
        (_, Some(recovery)) => Ok(recovery.seconds.map_or(f64::INFINITY, |seconds| seconds * 1e3)),
    }
}
