//! One number for each seed, and what is required of it with every seed.
//!
//! A condition on the mean, or one that a majority of the seeds decides, hides the seed with which it fails.
//! So a condition is a [`Criterion`]: it holds only if it holds with the worst seed, and that seed's number
//! is shown. A seed without a number (a crowd that was not found has no delay) fails every criterion, as does
//! an experiment without runs.

use crate::experiments::Spread;
use crate::experiments::significant::significant;
use std::collections::BTreeMap;
use std::fmt;

/// The size of an effect that a paper states holds if ours differs by no more than this part of it: one rule
/// for all figures.
pub(crate) const EFFECT_TOLERANCE: f64 = 0.25;

/// One number for each seed; not a number where a seed has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SeedValues(BTreeMap<u64, f64>);

/// A number of each seed, and the range in which it has to be with every seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// Name of the number; empty where the condition says it.
    quantity: String,
    values: SeedValues,
    bound: Bound,
}

/// A range.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    AtMost(f64),
    Below(f64),
    AtLeast(f64),
    Above(f64),
    /// Both ends are in it.
    Between(f64, f64),
}

impl SeedValues {
    /// Seeds and their numbers.
    pub(crate) fn of(values: impl IntoIterator<Item = (u64, Option<f64>)>) -> Self {
        Self::collected(values.into_iter().map(|(seed, value)| (seed, value.unwrap_or(f64::NAN))))
    }

    pub(crate) fn spread(&self) -> Option<Spread> {
        Spread::of(self.0.values().copied())
    }

    pub(crate) fn map(&self, change: impl Fn(f64) -> f64) -> Self {
        Self::collected(self.0.iter().map(|(&seed, &value)| (seed, change(value))))
    }

    /// Both numbers of the same seed; a seed that one of them lacks has none.
    pub(crate) fn with(&self, other: &Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        let of = |values: &Self, seed| values.0.get(seed).copied().unwrap_or(f64::NAN);
        let seeds = self.0.keys().chain(other.0.keys());
        Self::collected(seeds.map(|seed| (*seed, combine(of(self, seed), of(other, seed)))))
    }

    /// Inserts one by one: `collect` sorts first, and the compiler would build that sort once more for each
    /// of the 430 closures that call this, two thirds of this crate's code.
    fn collected(values: impl Iterator<Item = (u64, f64)>) -> Self {
        let mut collected = BTreeMap::new();
        values.for_each(|(seed, value)| {
            collected.insert(seed, value);
        });
        Self(collected)
    }

    /// This number over another of the same seed.
    pub(crate) fn over(&self, other: &Self) -> Self {
        self.with(other, |one, other| one / other)
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        self.with(other, |one, other| one + other)
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.with(other, |one, other| one - other)
    }

    /// The smaller number of each seed; none where one is missing.
    pub(crate) fn smaller(&self, other: &Self) -> Self {
        self.with(other, |one, other| if one.is_nan() || one < other { one } else { other })
    }

    /// The larger number of each seed; none where one is missing.
    pub(crate) fn larger(&self, other: &Self) -> Self {
        self.with(other, |one, other| if one.is_nan() || one > other { one } else { other })
    }

    /// The smallest step from one to the next, of each seed; below zero where the numbers do not rise.
    pub(crate) fn smallest_step(ascending: &[Self]) -> Self {
        let steps = ascending.windows(2).map(|pair| pair[1].minus(&pair[0]));
        steps.reduce(|one, other| one.smaller(&other)).unwrap_or_default()
    }

    pub(crate) fn at_most(self, bound: f64) -> Criterion {
        self.bounded(Bound::AtMost(bound))
    }

    pub(crate) fn below(self, bound: f64) -> Criterion {
        self.bounded(Bound::Below(bound))
    }

    pub(crate) fn at_least(self, bound: f64) -> Criterion {
        self.bounded(Bound::AtLeast(bound))
    }

    pub(crate) fn above(self, bound: f64) -> Criterion {
        self.bounded(Bound::Above(bound))
    }

    pub(crate) fn between(self, least: f64, most: f64) -> Criterion {
        self.bounded(Bound::Between(least, most))
    }

    /// The size of an effect that a paper states, to a quarter of it ([`EFFECT_TOLERANCE`]).
    pub(crate) fn stated(self, paper: f64) -> Criterion {
        let [one, other] = [1.0 - EFFECT_TOLERANCE, 1.0 + EFFECT_TOLERANCE].map(|part| paper * part);
        self.between(one, other)
    }

    /// Excess of a ratio over 1, percent.
    pub(crate) fn gain_percent(&self) -> Self {
        self.map(|ratio| (ratio - 1.0) * 100.0)
    }

    /// Shortfall of a ratio below 1, percent.
    pub(crate) fn fall_percent(&self) -> Self {
        self.map(|ratio| (1.0 - ratio) * 100.0)
    }

    fn bounded(self, bound: Bound) -> Criterion {
        Criterion { quantity: String::new(), values: self, bound }
    }

    /// The seed nearest to breaking the bound, or furthest beyond it.
    fn worst(&self, bound: Bound) -> Option<(u64, f64)> {
        let margin =
            |value: f64| Some(bound.margin(value)).filter(|it| !it.is_nan()).unwrap_or(f64::NEG_INFINITY);
        let worst = self.0.iter().min_by(|one, other| margin(*one.1).total_cmp(&margin(*other.1)));
        worst.map(|(&seed, &value)| (seed, value))
    }
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::Below(bound) => value < bound,
            Self::AtLeast(bound) => value >= bound,
            Self::Above(bound) => value > bound,
            Self::Between(least, most) => (least..=most).contains(&value),
        }
    }

    /// A value with as many digits as it takes to see that it breaks the bound.
    fn text_of(self, value: f64) -> String {
        let text = significant(value);
        let ends = match self {
            Self::AtMost(bound) | Self::Below(bound) | Self::AtLeast(bound) | Self::Above(bound) => {
                [bound; 2]
            }
            Self::Between(least, most) => [least, most],
        };
        match value.is_nan() {
            true => "none".to_owned(),
            false if !self.holds(value) && ends.map(significant).contains(&text) => value.to_string(),
            false => text,
        }
    }

    /// Distance of a value from the bound: positive inside, negative outside.
    fn margin(self, value: f64) -> f64 {
        match self {
            Self::AtMost(bound) | Self::Below(bound) => bound - value,
            Self::AtLeast(bound) | Self::Above(bound) => value - bound,
            Self::Between(least, most) => (value - least).min(most - value),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::AtMost(bound) => write!(out, "at most {}", significant(bound)),
            Self::Below(bound) => write!(out, "below {}", significant(bound)),
            Self::AtLeast(bound) => write!(out, "at least {}", significant(bound)),
            Self::Above(bound) => write!(out, "above {}", significant(bound)),
            Self::Between(least, most) => write!(out, "{} to {}", significant(least), significant(most)),
        }
    }
}

impl Criterion {
    /// Says what the number is, where the condition has several.
    pub(crate) fn named(self, quantity: impl Into<String>) -> Self {
        Self { quantity: quantity.into(), ..self }
    }

    /// Returns whether it holds with every seed, of which there is one at least.
    #[must_use]
    pub fn holds(&self) -> bool {
        let mut values = self.values.0.values();
        !self.values.0.is_empty() && values.all(|&value| self.bound.holds(value))
    }
}

/// The requirement, the worst seed's number, and the range of all.
impl fmt::Display for Criterion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { quantity, values, bound } = self;
        if !quantity.is_empty() {
            write!(out, "{quantity}: ")?;
        }
        write!(out, "{bound}; ")?;
        let (Some((seed, worst)), Some(spread)) = (values.worst(*bound), values.spread()) else {
            return out.write_str("no run has a value");
        };
        let worst = bound.text_of(worst);
        if values.0.len() == 1 {
            return write!(out, "here {worst}");
        }
        write!(out, "worst seed ({seed}) {worst}, ")?;
        let (least, most) = (significant(spread.least), significant(spread.most));
        let alike = least == most;
        if alike { write!(out, "all {least}") } else { write!(out, "all {least}–{most}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(values: &[f64]) -> SeedValues {
        SeedValues::of((1..).zip(values.iter().map(|&value| Some(value))))
    }

    /// Goal: one bad seed among many good ones decides. Method: what a majority and the mean both pass.
    #[test]
    fn the_worst_seed_decides_whatever_mean_and_majority_say() {
        let late_s = values(&[0.0, 0.0, 0.0, 205.0, 0.0]);
        let criterion = late_s.clone().at_most(100.0);
        assert!(late_s.spread().is_some_and(|spread| spread.mean <= 100.0) && !criterion.holds());
        assert_eq!(criterion.to_string(), "at most 100; worst seed (4) 205, all 0–205");
        assert!(late_s.clone().at_least(0.0).holds() && !late_s.clone().above(0.0).holds());
        assert!(late_s.clone().at_most(205.0).holds() && !late_s.below(205.0).holds());
    }

    #[test]
    fn a_seed_without_a_number_fails_every_bound_and_so_does_no_seed() {
        let found = SeedValues::of([(3, Some(20.0)), (4, None)]);
        for criterion in [found.clone().at_most(1e9), found.clone().at_least(-1e9)] {
            assert!(!criterion.holds());
            assert!(criterion.to_string().ends_with("worst seed (4) none, all 20"), "{criterion}");
        }
        let nothing = SeedValues::default().at_most(1e9);
        assert!(!nothing.holds());
        assert_eq!(nothing.to_string(), "at most 1000000000; no run has a value");
        for combined in [found.smaller(&found), found.over(&found), found.plus(&found)] {
            assert!(!combined.at_most(1e9).holds());
        }
    }

    #[test]
    fn numbers_of_the_same_seed_are_combined() {
        let (one, other) = (values(&[1.0, 4.0]), values(&[2.0, 2.0]));
        assert_eq!(one.over(&other), values(&[0.5, 2.0]));
        assert_eq!(one.smaller(&other), values(&[1.0, 2.0]));
        let partly = SeedValues::of([(2, Some(8.0))]);
        assert!(!one.over(&partly).above(0.0).holds());
        assert_eq!(SeedValues::smallest_step(&[one, other, values(&[5.0, 1.0])]), values(&[1.0, -2.0]));
    }

    #[test]
    fn a_stated_effect_holds_to_a_quarter_of_it() {
        let shorter = |ratios: &[f64]| values(ratios).fall_percent().stated(40.0);
        assert!(shorter(&[0.69, 0.51]).holds());
        assert!(!shorter(&[0.6, 0.76]).holds() && !shorter(&[0.6, 0.44]).holds());
        assert_eq!(shorter(&[0.76]).to_string(), "30 to 50; here 24");
        assert!(values(&[1.12]).gain_percent().stated(12.0).holds());
    }

    #[test]
    fn a_range_is_worst_where_it_is_nearest_to_an_end() {
        let criterion = values(&[0.44, 0.41]).between(0.4, 0.5).named("part");
        assert!(criterion.holds());
        assert_eq!(criterion.to_string(), "part: 0.4 to 0.5; worst seed (2) 0.41, all 0.41–0.44");
        assert_eq!(values(&[0.51]).between(0.4, 0.5).to_string(), "0.4 to 0.5; here 0.51");
        assert_eq!(values(&[1.0001]).at_most(1.0).to_string(), "at most 1; here 1.0001");
    }
}
