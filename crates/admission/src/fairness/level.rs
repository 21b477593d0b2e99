//! The level above which claimants are over their share: the water level of one partition of the load.
//!
//! A partition divides the offered load D into claimants i with cost rates r_i and weights w_i. While the
//! load exceeds what is served, C, the level L is the one at which cutting the claimants above it removes the
//! excess:
//!
//! > Σ max(0, r_i − L·w_i) = D − C
//!
//! so a claimant below it need not give up anything. L is never below the equal share C / Σw; the bounds
//! below keep it from where the numbers prove nothing.

use super::claims::{Claims, Judged, Weighed};
use flashweir_aqm::purge::{DEVIATIONS, TOLERANCE};

/// One way to divide the offered load among claimants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Partition {
    /// Offered cost, microseconds of service time a second (D).
    pub(super) offered: f64,
    /// Cost of what is admitted (C).
    pub(super) served: f64,
    /// Persons that are claimants beside those of the table.
    pub(super) people: f64,
    /// A claimant with a smaller rate is never over its share: a page and its assets.
    pub(super) burst: f64,
    /// Multiple of the mean of all claimants that is no more than usual.
    pub(super) spread: f64,
    /// Cost rate of a count of one.
    pub(super) rate_of_one: f64,
    /// Mean cost of a request.
    pub(super) request_us: f64,
    /// True if a value that people show has as many shares as there are people who show it.
    pub(super) has_weights: bool,
    /// Page views of a person, as views are counted.
    pub(super) views_of_a_person: f64,
}

impl Partition {
    /// Judges every claimant.
    pub(super) fn judge(&self, claims: &mut Claims) -> Judged {
        let level = self.level(claims);
        if level.is_infinite() {
            return claims.forgive();
        }
        let nearly_over =
            self.weigh(claims).filter(|one| one.rate > NEARLY * level * one.weight).count() as u32;
        let judged = claims.judge(self.rate_of_one, self.views_of_one(), |weighed, count_us, was_over| {
            let bar = if was_over { STAYS_OVER } else { 1.0 } * level * weighed.weight;
            weighed.rate > bar && self.proven(count_us) > bar
        });
        Judged { nearly_over, ..judged }
    }

    /// A claimant is over its share with a rate above this for each of its weight; infinite where there is
    /// nothing to divide.
    fn level(&self, claims: &Claims) -> f64 {
        let excess = self.offered - self.served;
        let weights = self.weigh(claims).map(|one| one.weight).sum::<f64>();
        let claimants = self.people + weights;
        if !(excess > EXCESS_MIN * self.served && claimants >= 2.0) {
            return f64::INFINITY;
        }
        let equal = self.served / claimants;
        let floor = self.burst.max(TOLERANCE * equal).max(self.spread * self.offered / claimants);
        let highest = self.weigh(claims).map(|one| one.rate / one.weight).fold(0.0, f64::max);
        if highest <= STAYS_OVER * floor {
            return floor;
        }
        floor.max(TOLERANCE * self.water_level(claims, excess, highest))
    }

    /// By bisection: [`STEPS`] passes over the table, only while a claimant stands out.
    fn water_level(&self, claims: &Claims, excess: f64, highest: f64) -> f64 {
        let cut_above =
            |level: f64| self.weigh(claims).map(|one| (one.rate - level * one.weight).max(0.0)).sum::<f64>();
        let (mut low, mut high) = (0.0, highest);
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if cut_above(middle) > excess {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The rate that a count proves: the chance variation of its number of requests is subtracted (P-1).
    fn proven(&self, count_us: f64) -> f64 {
        let requests = count_us / self.request_us;
        (requests - DEVIATIONS * libm::sqrt(requests)) * self.request_us * self.rate_of_one
    }

    fn weigh(&self, claims: &Claims) -> impl Iterator<Item = Weighed> {
        claims.weigh(self.rate_of_one, self.views_of_one())
    }

    /// Views that are worth one share.
    fn views_of_one(&self) -> f64 {
        if self.has_weights { self.views_of_a_person } else { f64::INFINITY }
    }
}

/// Less than this part of what is served is no excess: what waits is offered before it is admitted.
const EXCESS_MIN: f64 = 0.05;
/// A claimant that is over its share stays so down to this part of the level, or chance would decide at each
/// period.
const STAYS_OVER: f64 = 0.8;
/// With more than this part of the level a claimant is nearly over its share: chance decides whether it is.
const NEARLY: f64 = 0.5;
/// To a thousandth of the highest rate.
const STEPS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    const PARTITION: Partition = Partition {
        offered: 0.0,
        served: 100_000.0,
        people: 0.0,
        burst: 0.0,
        spread: 1.0,
        rate_of_one: 1.0,
        request_us: 1.0,
        has_weights: true,
        views_of_a_person: 1.0,
    };

    fn level(rates: &[u32], partition: Partition) -> f64 {
        let mut claims = Claims::new();
        (0..).zip(rates).for_each(|(value, &rate)| assert!(!claims.record(value + 1, rate)));
        partition.level(&claims)
    }

    #[test]
    fn the_level_is_where_cutting_the_highest_removes_the_excess() {
        // 90 + 20 + 10 of 100: the highest is to give up 20.
        let found = level(&[90_000, 20_000, 10_000], Partition { offered: 120_000.0, ..PARTITION });
        assert!((found / (TOLERANCE * 70_000.0) - 1.0).abs() < 0.01, "{found}");
        // All alike: the equal share, and no claimant is above.
        let found = level(&[40_000; 5], Partition { offered: 200_000.0, spread: 1.5, ..PARTITION });
        assert!((found - 60_000.0).abs() < 1.0, "{found}");
    }

    #[test]
    fn there_is_nothing_to_divide_without_excess_or_among_fewer_than_two() {
        assert!(level(&[50_000, 20_000], Partition { offered: 70_000.0, ..PARTITION }).is_infinite());
        assert!(level(&[500_000], Partition { offered: 500_000.0, ..PARTITION }).is_infinite());
        assert!(level(&[], Partition { offered: 500_000.0, ..PARTITION }).is_infinite());
        let beside_one = Partition { offered: 500_000.0, people: 1.0, spread: 1.0, ..PARTITION };
        assert!(level(&[490_000], beside_one).is_finite());
    }
}
