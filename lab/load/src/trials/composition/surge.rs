//! Surges that people made, at a multiple of the origin's capacity: how soon the first request is refused,
//! and how soon after the end the last.
//!
//! Forty minutes around a surge, each a second, scaled so that the highest is a multiple of the capacity;
//! calm before and after. A surge begins ([`Surge::moments`]) when requests, were none refused, would have to
//! wait longer than the target: the excess over the capacity, added up, is a target's worth of work. Refusing
//! earlier is never needed, and a rise of a tenth takes ten seconds to get there. It ends with the last
//! second that asks for more than the capacity.
//!
//! Bars: the first refusal within [`REFUSED_WITHIN_S`] of the beginning, none from [`FORGOTTEN_WITHIN_S`]
//! after the end.

use super::traces::Trace;
use crate::trials::useful::Composition;
use flashweir_core::measure::Useful;
use std::fmt::Write;

/// Highest rate over the origin's capacity.
pub const TIMES: [f64; 3] = [2.0, 5.0, 10.0];
/// The first refusal after the beginning, at most.
pub const REFUSED_WITHIN_S: f64 = 1.0;
/// The last refusal after the end, at most.
pub const FORGOTTEN_WITHIN_S: f64 = 2.0;
/// Calm before, in which the gateway learns what is usual, and after.
pub const CALM_S: usize = 6;
/// The calm's load.
const CALM: f64 = 0.4;
/// Within which a request is to be answered.
const TARGET_S: f64 = 1.0;
const MINUTES: usize = 40;

/// A surge of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surge {
    /// Its name.
    pub name: &'static str,
    /// Trace that has its counts.
    pub trace: Trace,
    /// Its first count.
    pub from: usize,
}

impl Surge {
    /// Five surges of the World Cup's site.
    pub const ALL: [Self; 5] = [
        Self { name: "kick-off, Brazil and Scotland", trace: Trace::ALL[0], from: 205 },
        Self { name: "final whistle, Brazil and Scotland", trace: Trace::ALL[0], from: 305 },
        Self { name: "kick-off, Brazil and Netherlands", trace: Trace::ALL[1], from: 110 },
        Self { name: "final whistle, Brazil and Netherlands", trace: Trace::ALL[1], from: 255 },
        Self { name: "abrupt burst", trace: Trace::ALL[2], from: 85 },
    ];

    /// Loads of each second over the capacity, calm before and after included; none where the trace is too
    /// short.
    #[must_use]
    pub fn loads(self, counts: &[f64], times: f64) -> Option<Vec<f64>> {
        let counts = counts.get(self.from..self.from + MINUTES)?;
        let highest = counts.iter().copied().fold(0.0, f64::max);
        let loads = counts.iter().map(|count| count / highest * times);
        let calm = [CALM; CALM_S];
        (highest > 0.0).then(|| calm.into_iter().chain(loads).chain(calm).collect())
    }

    /// Beginning and end of a surge of these loads, seconds; none where it never exceeds the capacity for
    /// long enough.
    #[must_use]
    pub fn moments(loads: &[f64]) -> Option<[f64; 2]> {
        let mut excess_s = 0.0_f64;
        let mut beginning_s = None;
        for (second, load) in loads.iter().enumerate() {
            let before_s = excess_s;
            excess_s = (excess_s + load - 1.0).max(0.0);
            if beginning_s.is_none() && excess_s >= TARGET_S {
                beginning_s = Some(second as f64 + (TARGET_S - before_s) / (load - 1.0));
            }
        }
        let end = loads.iter().rposition(|load| *load > 1.0)?;
        Some([beginning_s?, (end + 1) as f64])
    }
}

/// Result of one run with a surge.
#[derive(Clone, Debug, PartialEq)]
pub struct SurgeRun {
    /// Name of the surge.
    pub name: &'static str,
    /// Its highest rate over the capacity.
    pub times: f64,
    /// Stages that decided.
    pub composition: Composition,
    /// Beginning and end, seconds.
    pub moments_s: [f64; 2],
    /// Time of the first and of the last refusal, seconds, to a fifth of a second; none where no request was
    /// refused.
    pub refused_s: Option<[f64; 2]>,
    /// Use of the origin's time from beginning to end.
    pub useful: Useful,
    /// The load generator could not keep up.
    pub is_saturated: bool,
}

impl SurgeRun {
    /// Seconds from the beginning to the first refusal, and from the end to the last; negative is earlier.
    #[must_use]
    pub fn delays_s(&self) -> Option<[f64; 2]> {
        let [begun, ended] = self.moments_s;
        self.refused_s.map(|[first, last]| [first - begun, last - ended])
    }

    /// Returns whether both bars are met.
    #[must_use]
    pub fn is_in_time(&self) -> bool {
        self.delays_s().is_some_and(|[first, last]| first <= REFUSED_WITHIN_S && last <= FORGOTTEN_WITHIN_S)
    }
}

/// The table.
#[must_use]
pub fn text(runs: &[SurgeRun]) -> String {
    let mut text = String::from(
        "Surges: first refusal after the beginning, last after the end, useful in between\n\n\
         surge                                    peak  stages        first s   last s  useful  in time\n",
    );
    for run in runs {
        let delays = run.delays_s().map(|delays| delays.map(|delay| format!("{delay:+.1}")));
        let [first, last] = delays.unwrap_or_else(|| ["–", "–"].map(ToOwned::to_owned));
        let saturated = if run.is_saturated { "  generator saturated" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<38} {:>5}×  {:<13} {first:>7} {last:>8} {:>7.3}  {}{saturated}",
            run.name,
            run.times,
            run.composition.name(),
            run.useful.useful(),
            if run.is_in_time() { "yes" } else { "NO" },
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surge_begins_when_a_targets_worth_of_work_is_too_much() {
        // Half a second's worth in the first second; in the second the other half takes a quarter of it.
        assert_eq!(Surge::moments(&[0.4, 1.5, 3.0, 0.4]), Some([2.25, 3.0]));
        // What was too much is worked off again before the second rise.
        assert_eq!(Surge::moments(&[1.5, 0.2, 1.5, 1.5, 1.5]), Some([4.0, 5.0]));
        assert_eq!((Surge::moments(&[1.5, 0.2]), Surge::moments(&[0.5])), (None, None));
    }

    #[test]
    fn the_highest_minute_is_the_multiple_and_calm_is_around_it() {
        let counts: Vec<f64> = (0..400).map(f64::from).collect();
        let loads = Surge::ALL[0].loads(&counts, 5.0).unwrap();
        assert_eq!(loads.len(), 2 * CALM_S + MINUTES);
        assert_eq!((loads[0], loads[CALM_S + MINUTES - 1], loads[CALM_S + MINUTES]), (CALM, 5.0, CALM));
        assert_eq!(Surge::ALL[0].loads(&counts[..200], 5.0), None);
    }

    #[test]
    fn both_ends_are_judged() {
        let run = |refused_s, is_saturated| SurgeRun {
            name: "a surge",
            times: 5.0,
            composition: Composition::Default,
            moments_s: [10.0, 30.0],
            refused_s,
            useful: Useful { busy: 0.9, in_time: 1.0, processor_ms: None },
            is_saturated,
        };
        let runs = [
            run(Some([10.8, 31.8]), false),
            run(Some([9.0, 32.2]), true),
            run(Some([11.2, 30.0]), false),
            run(None, false),
        ];
        assert_eq!(runs.each_ref().map(SurgeRun::is_in_time), [true, false, false, false]);
        insta::assert_snapshot!(text(&runs));
    }
}
