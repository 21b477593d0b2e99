//! Distributions of times and their points, by name.

use crate::{Percentiles, Tally};

/// A distribution of times.
#[derive(Debug)]
pub(in super::super) struct Times {
    /// Prefix of the names of its points; those of the latency may omit it.
    pub(in super::super) name: &'static str,
    /// Title of the distribution, for people.
    pub(in super::super) title: &'static str,
    read: fn(&Tally) -> &Percentiles,
    /// Number of its units in a millisecond.
    units_per_ms: f64,
}

/// A point of a distribution.
#[derive(Debug)]
pub(in super::super) struct Point {
    pub(in super::super) name: &'static str,
    /// As people write it too.
    pub(in super::super) title: &'static str,
    read: fn(&Percentiles) -> Option<f64>,
}

/// The distribution that is meant where none is named.
const LATENCY: &str = "latency";

/// In the order they are shown in.
pub(in super::super) static TIMES: [Times; 5] = [
    Times {
        name: LATENCY,
        title: "latency of completed",
        read: |tally| &tally.latency_ms,
        units_per_ms: 1.0,
    },
    Times {
        name: "refusal",
        title: "latency of refused",
        read: |tally| &tally.refusal_ms,
        units_per_ms: 1.0,
    },
    Times { name: "ttfb", title: "time to first byte", read: |tally| &tally.ttfb_ms, units_per_ms: 1.0 },
    Times {
        name: "served",
        title: "all tries of a request",
        read: |tally| &tally.served_ms,
        units_per_ms: 1.0,
    },
    Times { name: "lag", title: "lag of the generator", read: |tally| &tally.lag_us, units_per_ms: 1e3 },
];

/// In the order they are shown in.
pub(in super::super) static POINTS: [Point; 7] = [
    Point { name: "mean", title: "mean", read: |points| points.mean },
    Point { name: "p50", title: "p50", read: |points| points.p50 },
    Point { name: "p90", title: "p90", read: |points| points.p90 },
    Point { name: "p99", title: "p99", read: |points| points.p99 },
    Point { name: "p999", title: "p99.9", read: |points| points.p999 },
    Point { name: "p9999", title: "p99.99", read: |points| points.p9999 },
    Point { name: "max", title: "max", read: |points| points.max },
];

impl Times {
    /// The distribution called `name`.
    pub(super) fn called(name: &str) -> Option<&'static Self> {
        TIMES.iter().find(|times| times.name == name)
    }

    /// The distribution that is meant where none is named.
    pub(super) fn unnamed() -> &'static Self {
        &TIMES[0]
    }

    /// Milliseconds; `None` when nothing was measured.
    pub(in super::super) fn of(&self, tally: &Tally, point: &Point) -> Option<f64> {
        (point.read)((self.read)(tally)).map(|value| value / self.units_per_ms)
    }

    /// Returns whether it holds anything.
    pub(in super::super) fn is_measured(&self, tally: &Tally) -> bool {
        (self.read)(tally).count > 0
    }

    /// The name of a point of it.
    pub(super) fn point_name(&self, point: &Point) -> String {
        if self.name == LATENCY { point.name.to_owned() } else { format!("{}_{}", self.name, point.name) }
    }
}

impl Point {
    /// The point called `name`, `p999` or `p99.9`.
    pub(super) fn called(name: &str) -> Option<&'static Self> {
        POINTS.iter().find(|point| point.name == name || point.title == name)
    }
}

/// The distributions of the table are the same if their names are.
impl PartialEq for Times {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// As for [`Times`].
impl PartialEq for Point {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
