//! One figure of two results, side by side.

use super::noise;
use crate::command::metric::{LEDGER, Metric, POINTS, Quantity, RUN, SHARES, TIMES, seconds, written};
use crate::{LoadResult, Second, Tally};
use serde_json::{Value, json};

/// One line of the comparison.
pub(super) struct Comparison {
    pub(super) name: String,
    /// Too much for people to read through.
    pub(super) is_minor: bool,
    quantity: Quantity,
    /// Times in milliseconds, infinity for never.
    a: Option<f64>,
    b: Option<f64>,
    pub(super) verdict: Option<Verdict>,
}

/// Verdict on B compared with A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Beyond noise.
    Better,
    /// Beyond noise.
    Worse,
    /// Within noise.
    Same,
}

/// Comparisons of two ledgers.
pub(super) fn of_ledgers(a: (&LoadResult, &Tally), b: (&LoadResult, &Tally)) -> Vec<Comparison> {
    let ledger = LEDGER.iter().map(Metric::Ledger);
    let points = TIMES
        .iter()
        .filter(|times| times.is_measured(a.1) || times.is_measured(b.1))
        .flat_map(|times| POINTS.iter().map(|point| Metric::Point(times, point)));
    let compare = |metric: Metric| {
        let value = |(result, tally): (&LoadResult, &Tally)| metric.of_tally(tally, seconds(result)).ok();
        let mut row = Comparison::new(metric, value(a), value(b));
        row.judge(&a.1.series, &b.1.series);
        row
    };
    ledger.chain(points).map(compare).filter(Comparison::says_something).collect()
}

/// Comparisons of whole runs only.
pub(super) fn of_runs(a: &LoadResult, b: &LoadResult) -> Vec<Comparison> {
    let metrics = RUN.iter().map(Metric::Run).chain([Metric::Recovery]);
    let compare = |metric: Metric| Comparison::new(metric, metric.of_run(a).ok(), metric.of_run(b).ok());
    metrics.map(compare).filter(Comparison::says_something).collect()
}

impl Comparison {
    fn new(metric: Metric, a: Option<f64>, b: Option<f64>) -> Self {
        let is_minor = match metric {
            // Of the latency every point, of the rest the middle and the end.
            Metric::Point(times, point) => {
                times.name != "latency" && !["p50", "p99", "max"].contains(&point.name)
            }
            _ => false,
        };
        Self { name: metric.name(), is_minor, quantity: metric.quantity(), a, b, verdict: None }
    }

    /// Marks what seconds can tell about: shares, and the two percentiles that seconds have.
    fn judge(&mut self, a: &[Second], b: &[Second]) {
        let share = SHARES.iter().find(|share| share.name == self.name);
        let (direction, higher_is_better) = match (self.name.as_str(), share) {
            (_, Some(share)) => (noise::shares(a, b, share), share.higher_is_better),
            ("p50", _) => (noise::times(a, b, |second| second.latency_p50_ms), false),
            ("p99", _) => (noise::times(a, b, |second| second.latency_p99_ms), false),
            _ => return,
        };
        let (Some(direction), Some(a), Some(b)) = (direction, self.a, self.b) else { return };
        // Where the seconds say one thing and the whole run another, nothing is certain.
        let whole = (b - a).total_cmp(&0.0) as i8;
        self.verdict = Some(match direction {
            0 => Verdict::Same,
            _ if direction != whole => Verdict::Same,
            _ if (direction > 0) == higher_is_better => Verdict::Better,
            _ => Verdict::Worse,
        });
    }

    /// Lines of zeros or of nothing at all are left out.
    fn says_something(&self) -> bool {
        [self.a, self.b].into_iter().flatten().any(|value| value != 0.0)
    }

    /// B over A; `None` where that is no number.
    fn ratio(&self) -> Option<f64> {
        let (a, b) = (self.a?, self.b?);
        (a != 0.0 && a.is_finite() && b.is_finite()).then(|| b / a)
    }

    /// B minus A, for shares: three times a share of next to nothing is still next to nothing.
    fn difference(&self) -> Option<f64> {
        (self.quantity == Quantity::Share).then(|| Some(self.b? - self.a?))?
    }

    pub(super) fn cells(&self) -> Vec<String> {
        let value =
            |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| written(value, self.quantity));
        let change = match (self.quantity, self.difference(), self.ratio()) {
            (Quantity::Share, Some(difference), _) => format!("{:+.2} points", difference * 100.0),
            (Quantity::Share, None, _) | (_, _, None) => "-".to_owned(),
            (_, _, Some(ratio)) => format!("{ratio:.3}"),
        };
        let verdict = self.verdict.map_or("", Verdict::as_str);
        vec![self.name.clone(), value(self.a), value(self.b), change, verdict.to_owned()]
    }

    /// Times in milliseconds; `"never"` for a recovery that was not.
    pub(super) fn json(&self) -> Value {
        let value = |value: Option<f64>| match value {
            Some(value) if value.is_infinite() => json!("never"),
            value => json!(value),
        };
        let (key, change) = match self.quantity {
            Quantity::Share => ("difference", self.difference()),
            _ => ("ratio", self.ratio()),
        };
        json!({
            "a": value(self.a),
            "b": value(self.b),
            key: change,
            "verdict": self.verdict.map(Verdict::as_str),
        })
    }
}

impl Verdict {
    fn as_str(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
        }
    }
}
