//! Finding of a run of the figure, in the paper's seconds and requests.

use super::crowd::{CLASSES, Crowd, LENGTH_S, PATIENCE_S, TARGET_S};
use crate::report::{Chart, Figure, Hue, Point, ReportError, Series};
use crate::trials::percentile::admitted_ms;
use crate::{LoadResult, Second};
use flashweir_core::Reason;
use std::fmt::Write as _;
use std::ops::Range;

/// Ours; a bin has to hold enough people for a 95th percentile.
const BIN_S: u64 = 2;
const QUIET: Range<f64> = 10.0..130.0;
const BRONZE_RISES: Range<f64> = 135.0..195.0;
const SILVER_RISES: Range<f64> = 200.0..210.0;
const GOLD_IS_HIGH: Range<f64> = 220.0..385.0;
/// Of the capacity: a crowd that is mostly gold is to be served as well as any other.
const GOOD: f64 = 0.92;

/// Facts besides the load generator's result.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The crowd that came.
    pub crowd: Crowd,
    /// Each server, and what it did alone, requests a second.
    pub servers: Vec<(String, f64)>,
    /// Capacity of the servers together after the run, requests a second; goodput is judged by the mean of
    /// before and after.
    pub capacity_after_rps: f64,
    /// Processor, cores and system.
    pub machine: String,
}

/// Finding of a run.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Place and subject of the run.
    pub facts: Facts,
    /// Quantities.
    pub values: Vec<Value>,
    /// Conditions for the result to have the paper's shape.
    pub conditions: Vec<Condition>,
    /// The load generator could not keep up: the run says little.
    pub saturated: bool,
    /// The numbers behind the chart.
    pub csv: String,
    /// Requests let in over time.
    pub figure: Figure,
}

/// A quantity of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Name of the quantity, with its unit.
    pub what: String,
    /// Its value; absent where there was nothing to measure.
    pub ours: Option<f64>,
}

/// A condition and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The condition, in words.
    pub what: String,
    /// True if the condition holds.
    pub holds: bool,
}

impl Finding {
    /// Judges a run.
    ///
    /// # Errors
    /// [`ReportError`] when the chart cannot be drawn, which no result should cause.
    pub fn of(load: &LoadResult, facts: Facts) -> Result<Self, ReportError> {
        let capacity_rps = (facts.crowd.capacity_rps + facts.capacity_after_rps) / 2.0;
        let run = CataclysmRun { load, crowd: facts.crowd, capacity_rps };
        let lines = run.lines();
        let chart = Chart::new(
            "Requests let in by three real servers",
            "seconds of the paper",
            "requests/s of the paper",
        );
        let hues = [Hue::Amber, Hue::Grey, Hue::Vermillion];
        let chart = lines.iter().zip(hues).fold(chart, |chart, ((name, points), hue)| {
            chart.series(Series::line(name.clone(), hue, points.clone()))
        });
        Ok(Self {
            facts,
            values: run.values(),
            conditions: run.conditions(),
            saturated: load.saturated,
            csv: csv(&lines, &run.p95_s()),
            figure: chart.figure()?,
        })
    }
}

/// One run of the reproduction, as it was loaded and judged.
struct CataclysmRun<'a> {
    load: &'a LoadResult,
    crowd: Crowd,
    /// Around the run.
    capacity_rps: f64,
}

impl CataclysmRun<'_> {
    fn values(&self) -> Vec<Value> {
        let value = |what: String, ours| Value { what, ours: Some(ours) };
        let refused = self.refused(None, QUIET) * 100.0;
        let mut values = vec![value("refused of all before 130 s, %".to_owned(), refused)];
        for (when, span) in
            [("135 to 195 s", BRONZE_RISES), ("200 to 210 s", SILVER_RISES), ("220 to 385 s", GOLD_IS_HIGH)]
        {
            let let_in = |class: &str| {
                value(format!("{class} let in/s, {when}"), self.let_in_rps(class, span.clone()))
            };
            values.extend(CLASSES.map(let_in));
        }
        values.push(value("goodput over the capacity while gold is high".to_owned(), self.good()));
        values.push(value(
            "of all refused, by the ceiling on flash crowds, %".to_owned(),
            self.by_ceiling() * 100.0,
        ));
        let p95 = admitted_ms(&self.load.totals.series, 0.95, PATIENCE_S).map(|ms| ms / 1e3);
        values.push(Value { what: "95th percentile of those let in, s".to_owned(), ours: p95 });
        values
    }

    fn conditions(&self) -> Vec<Condition> {
        let condition = |what: &str, holds| Condition { what: what.to_owned(), holds };
        let refused = |class: &str, span: &Range<f64>| self.refused(Some(class), span.clone());
        let gold = self.let_in_rps("gold", GOLD_IS_HIGH);
        let others = self.let_in_rps("silver", GOLD_IS_HIGH) + self.let_in_rps("bronze", GOLD_IS_HIGH);
        let late = self.p95_s().iter().filter(|(_, p95)| p95.is_some_and(|p95| p95 > TARGET_S)).count();
        vec![
            condition("before 130 s at most one in a hundred is refused", self.refused(None, QUIET) <= 0.01),
            condition(
                "from 130 s bronze is refused, gold and silver (to one in a hundred) are not",
                refused("bronze", &BRONZE_RISES) > 0.01
                    && refused("gold", &BRONZE_RISES).max(refused("silver", &BRONZE_RISES)) <= 0.01,
            ),
            condition(
                "from 195 s silver goes before bronze",
                refused("silver", &SILVER_RISES) < 0.5 * refused("bronze", &SILVER_RISES),
            ),
            condition("while gold is high, nine in ten let in are gold", gold > 0.0 && gold >= 9.0 * others),
            condition(
                &format!("while gold is high, goodput is at least {GOOD} of the capacity"),
                self.good() >= GOOD,
            ),
            condition(
                &format!(
                    "the 95th percentile stays below {TARGET_S} s in all stretches of {BIN_S} of our seconds but two at most"
                ),
                late <= 2,
            ),
        ]
    }

    /// Let in over time, for each class.
    fn lines(&self) -> Vec<(String, Vec<Point>)> {
        let points = |class: &str| {
            let bins = self.bins().map(|(from_s, span)| (from_s, Some(self.let_in_rps(class, span))));
            bins.collect()
        };
        CLASSES.map(|class| (class.to_owned(), points(class))).to_vec()
    }

    /// 95th percentile of those let in, over time.
    fn p95_s(&self) -> Vec<Point> {
        let p95 = |span| admitted_ms(self.within(&self.load.totals.series, span), 0.95, PATIENCE_S);
        self.bins().map(|(from_s, span)| (from_s, p95(span).map(|ms| ms / 1e3))).collect()
    }

    fn good(&self) -> f64 {
        let seconds = self.within(&self.load.totals.series, GOLD_IS_HIGH);
        let (good, count) =
            seconds.fold((0, 0u32), |(good, count), second| (good + second.goodput, count + 1));
        good as f64 / (f64::from(count) * self.capacity_rps)
    }

    /// The share of refusals that the flash crowd detector made, and not the sentry.
    fn by_ceiling(&self) -> f64 {
        let totals = &self.load.totals;
        let by_ceiling = totals.refused_by_reason.get(Reason::FlashCrowd.as_str()).copied().unwrap_or(0);
        by_ceiling as f64 / totals.refused.max(1) as f64
    }

    /// In the paper's requests a second.
    fn let_in_rps(&self, class: &str, span: Range<f64>) -> f64 {
        let sums = |(let_in, count): (u64, u32), second: &Second| {
            (let_in + second.offered - second.refused, count + 1)
        };
        let (let_in, count) = self.within(self.series(class), span).fold((0, 0), sums);
        let_in as f64 / f64::from(count.max(1)) / self.crowd.scale()
    }

    /// Part of a class's requests, or of all classes.
    fn refused(&self, class: Option<&str>, span: Range<f64>) -> f64 {
        let series = class.map_or(self.load.totals.series.as_slice(), |class| self.series(class));
        let sums = |(refused, offered), second: &Second| (refused + second.refused, offered + second.offered);
        let (refused, offered) = self.within(series, span).fold((0, 0), sums);
        refused as f64 / offered.max(1) as f64
    }

    fn series(&self, class: &str) -> &[Second] {
        self.load.classes.get(class).map_or(&[], |tally| &tally.series)
    }

    /// The seconds of ours that lie within some of the paper's.
    fn within<'b>(
        &self,
        series: &'b [Second],
        span: Range<f64>,
    ) -> impl Iterator<Item = &'b Second> + use<'b> {
        let (from, to) = (span.start / self.crowd.speed_up, span.end / self.crowd.speed_up);
        series
            .iter()
            .filter(move |second| second.second as f64 >= from && (second.second + 1) as f64 <= to + 1e-9)
    }

    /// Beginning of each bin, and the bin, in the paper's seconds; the last is whole.
    fn bins(&self) -> impl Iterator<Item = (f64, Range<f64>)> {
        let width_s = BIN_S as f64 * self.crowd.speed_up;
        let count = (LENGTH_S / width_s).floor() as u32;
        (0..count).map(move |bin| {
            (f64::from(bin) * width_s, f64::from(bin) * width_s..f64::from(bin + 1) * width_s)
        })
    }
}

/// One line for each point: series, x, y. A point without a value has an empty y.
fn csv(lines: &[(String, Vec<Point>)], p95_s: &[Point]) -> String {
    let mut text = String::from("series,seconds of the paper,value\n");
    let mut put = |name: &str, points: &[Point]| {
        for (x, y) in points {
            let y = y.map_or_else(String::new, |y| format!("{y:.4}"));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name},{x},{y}");
        }
    };
    for (name, points) in lines {
        put(&format!("{name} let in/s"), points);
    }
    put("95th percentile s", p95_s);
    text
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::Tally;

    fn tally(second: impl Fn(f64) -> Second) -> Tally {
        let series = (0..96).map(|number| Second { second: number, ..second(number as f64 * 5.0) }).collect();
        Tally { series, ..Tally::default() }
    }

    /// As the paper has it: bronze goes at 130 s, silver at 210 s, gold stays.
    pub(crate) fn as_in_the_paper() -> (LoadResult, Facts) {
        let class = |refuses_from: f64| {
            tally(move |at| {
                let refused = if (refuses_from..385.0).contains(&at) { 10 } else { 0 };
                Second { offered: 10, refused, ..Second::default() }
            })
        };
        let mut load = LoadResult {
            totals: tally(|_| Second { offered: 30, goodput: 60, ..Second::default() }),
            ..LoadResult::default()
        };
        for (name, from) in CLASSES.iter().zip([999.0, 210.0, 130.0]) {
            load.classes.insert((*name).to_owned(), class(from));
        }
        let crowd = Crowd { speed_up: 5.0, capacity_rps: 64.0 };
        let servers = vec![("PHP".to_owned(), 63.0), ("an origin".to_owned(), 65.0)];
        (load, Facts { crowd, servers, capacity_after_rps: 64.0, machine: "two cores".to_owned() })
    }

    #[test]
    fn a_run_as_in_the_paper_holds_all_conditions() {
        let (load, facts) = as_in_the_paper();
        let finding = Finding::of(&load, facts).unwrap();
        let failed: Vec<_> = finding.conditions.iter().filter(|condition| !condition.holds).collect();
        assert!(failed.is_empty(), "{failed:?}");
        assert!(finding.csv.contains("bronze let in/s,120,"), "{}", finding.csv);
    }

    #[test]
    fn each_condition_can_fail() {
        let failing = |change: fn(&mut LoadResult)| {
            let (mut load, facts) = as_in_the_paper();
            change(&mut load);
            let finding = Finding::of(&load, facts).unwrap();
            let failed = finding.conditions.iter().position(|condition| !condition.holds);
            failed.expect("a condition fails")
        };
        assert_eq!(failing(|load| load.totals.series[10].refused = 30), 0);
        assert_eq!(failing(|load| load.classes.get_mut("silver").unwrap().series[30].refused = 10), 1);
        assert_eq!(
            failing(
                |load| (40..42).for_each(|at| load.classes.get_mut("silver").unwrap().series[at].refused = 6)
            ),
            2
        );
        let lets_silver_in = |load: &mut LoadResult| {
            load.classes.get_mut("silver").unwrap().series[44..77]
                .iter_mut()
                .for_each(|second| second.refused = 8);
        };
        assert_eq!(failing(lets_silver_in), 3);
        let lets_nobody_in = |load: &mut LoadResult| {
            for tally in load.classes.values_mut() {
                tally.series[44..77].iter_mut().for_each(|second| second.refused = second.offered);
            }
        };
        assert_eq!(failing(lets_nobody_in), 3);
        assert_eq!(
            failing(|load| load.totals.series[50..60].iter_mut().for_each(|second| second.goodput = 20)),
            4
        );
        assert_eq!(
            failing(|load| load.totals.series[10..16].iter_mut().for_each(|second| second.timed_out = 5)),
            5
        );
    }
}
