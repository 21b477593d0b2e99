//! Recent cost of claimants: the heavy ones among the persons, or among the values of one sign, in fixed
//! memory.
//!
//! A claimant's value chooses a set of `WAYS` entries, one cache line. One that has no entry takes its cost
//! off the smallest of the set, and takes the entry when nothing is left of it (Boyer and Moore's majority
//! vote, by weight). So an entry's count never exceeds what its claimant cost: no client is found heavy for
//! what others did, and light ones, however many, need no room.
//!
//! Cost: one cache line a request; a pass over the sets in use a period, of at most `FAIRNESS_CLAIMS`
//! entries. Keys that collide on purpose need the hash's key.

use alloc::boxed::Box;
use alloc::vec;
use flashweir_core::BitSet;
use flashweir_core::limits::FAIRNESS_CLAIMS;

/// Entries of a set.
const WAYS: usize = 4;
const SETS: usize = FAIRNESS_CLAIMS / WAYS;
const _: () = assert!(SETS.is_power_of_two() && size_of::<Set>() == 64, "a set is one cache line");
/// Words of a bit for each set.
const WORDS: usize = SETS.div_ceil(u64::BITS as usize);

/// Claimants by value.
#[derive(Clone, Debug)]
pub(super) struct Claims {
    sets: Box<[Set]>,
    /// Sets with a claimant. While a service is short its clients are few or many: a pass visits these alone.
    used: BitSet<WORDS>,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set([Claim; WAYS]);

#[derive(Clone, Copy, Debug, Default)]
struct Claim {
    /// Decayed, microseconds of service time.
    cost_us: u32,
    value: u32,
    /// Page views of people who show the value, decayed, in 2^−8.
    views: u32,
    is_over: bool,
    /// Periods until what it cost is no longer of a time in which it was over.
    over_lately: u8,
}

/// Of one claimant at the end of a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weighed {
    /// Cost rate, microseconds of service time a second.
    pub(super) rate: f64,
    /// In how many persons' shares it has: at least one.
    pub(super) weight: f64,
}

/// Totals of the judgement of all claimants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Judged {
    /// Number of claimants.
    pub(super) claimants: u32,
    /// Number of claimants over their share.
    pub(super) over: u32,
    /// Number of claimants over their share or nearly so; filled in by the partition.
    pub(super) nearly_over: u32,
    /// The counts of those that were not in the last periods, microseconds.
    pub(super) newly_over_us: f64,
}

impl Claims {
    pub(super) fn new() -> Self {
        Self { sets: vec![Set::default(); SETS].into_boxed_slice(), used: BitSet::default() }
    }

    /// Counts a request; whether its claimant is over its share.
    #[inline]
    pub(super) fn record(&mut self, value: u32, cost_us: u32) -> bool {
        let place = value as usize % SETS;
        let Set(claims) = &mut self.sets[place];
        let mut smallest = 0;
        for way in 0..WAYS {
            if claims[way].value == value {
                claims[way].cost_us = claims[way].cost_us.saturating_add(cost_us);
                return claims[way].is_over;
            }
            if claims[way].cost_us < claims[smallest].cost_us {
                smallest = way;
            }
        }
        let claim = &mut claims[smallest];
        if claim.cost_us > cost_us {
            claim.cost_us -= cost_us;
        } else {
            *claim = Claim { cost_us, value, ..Claim::default() };
            self.used.insert(place);
        }
        false
    }

    /// A person who shows this value opened a page.
    #[inline]
    pub(super) fn count_view(&mut self, value: u32) {
        let Set(claims) = &mut self.sets[value as usize % SETS];
        if let Some(claim) = claims.iter_mut().find(|claim| claim.value == value) {
            claim.views = claim.views.saturating_add(ONE_VIEW);
        }
    }

    /// Decays costs and views to these parts, and forgets claimants of whom nothing is left.
    pub(super) fn decay(&mut self, cost_keep: f64, views_keep: f64) {
        // `as` saturates.
        let (cost_keep, views_keep) = ((cost_keep * PART) as u64, (views_keep * PART) as u64);
        for place in self.used.iter() {
            let mut is_used = false;
            for claim in &mut self.sets[place].0 {
                claim.cost_us = ((u64::from(claim.cost_us) * cost_keep) >> PART_BITS) as u32;
                claim.views = ((u64::from(claim.views) * views_keep) >> PART_BITS) as u32;
                if claim.cost_us == 0 {
                    *claim = Claim::default();
                }
                is_used |= claim.cost_us > 0;
            }
            if !is_used {
                self.used.remove(place);
            }
        }
    }

    /// The claimants, by the cost rate of a count of one and the page views a person makes.
    pub(super) fn weigh(&self, rate_of_one: f64, views_of_a_person: f64) -> impl Iterator<Item = Weighed> {
        self.used().map(move |claim| claim.weigh(rate_of_one, views_of_a_person))
    }

    /// Decides of each claimant whether it is over its share from now on: by what it has, its count, and
    /// whether it was over.
    pub(super) fn judge(
        &mut self,
        rate_of_one: f64,
        views_of_a_person: f64,
        is_over: impl Fn(Weighed, f64, bool) -> bool,
    ) -> Judged {
        let mut judged = Judged::default();
        for place in self.used.iter() {
            for claim in self.sets[place].0.iter_mut().filter(|claim| claim.cost_us > 0) {
                let weighed = claim.weigh(rate_of_one, views_of_a_person);
                let was_over = claim.is_over;
                claim.is_over = is_over(weighed, f64::from(claim.cost_us), was_over);
                judged.claimants += 1;
                judged.over += u32::from(claim.is_over);
                if claim.is_over && claim.over_lately == 0 {
                    judged.newly_over_us += f64::from(claim.cost_us);
                }
                claim.over_lately =
                    if claim.is_over { OVER_LATELY } else { claim.over_lately.saturating_sub(1) };
            }
        }
        judged
    }

    /// No claimant is over its share until the next period ends.
    pub(super) fn forgive(&mut self) -> Judged {
        for place in self.used.iter() {
            self.sets[place].0.iter_mut().for_each(|claim| claim.is_over = false);
        }
        Judged::default()
    }

    fn used(&self) -> impl Iterator<Item = &Claim> {
        self.used.iter().flat_map(|place| &self.sets[place].0).filter(|claim| claim.cost_us > 0)
    }
}

impl Claim {
    fn weigh(&self, rate_of_one: f64, views_of_a_person: f64) -> Weighed {
        let people = f64::from(self.views) / f64::from(ONE_VIEW) / views_of_a_person;
        Weighed { rate: f64::from(self.cost_us) * rate_of_one, weight: people.max(1.0) }
    }
}

/// Periods after a claimant was over its share in which its count is still mostly of that time.
const OVER_LATELY: u8 = 20;
const ONE_VIEW: u32 = 1 << 8;
const PART_BITS: u32 = 32;
const PART: f64 = 4_294_967_296.0;

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_core::Rng;
    use flashweir_core::hash::mix;

    fn cost_of(claims: &Claims, value: u32) -> u32 {
        claims.used().find(|claim| claim.value == value).map_or(0, |claim| claim.cost_us)
    }

    /// Goal: no claimant is charged with more than it cost, and a heavy one with nearly all. Method: 20
    /// heavy ones among 100,000 light ones.
    #[test]
    fn counts_never_exceed_what_a_claimant_cost_and_heavy_ones_keep_theirs() {
        let mut claims = Claims::new();
        let mut rng = Rng::new(5);
        let mut costs = alloc::collections::BTreeMap::<u32, u32>::new();
        for _ in 0..200_000 {
            let name = if rng.below(2) == 0 { rng.below(20) } else { 1_000 + rng.below(100_000) };
            let (value, cost_us) = (mix(name + 1) as u32, 1 + rng.below(100) as u32);
            claims.record(value, cost_us);
            *costs.entry(value).or_default() += cost_us;
        }
        for claim in claims.used() {
            assert!(claim.cost_us <= costs[&claim.value]);
        }
        for name in 0..20 {
            let value = mix(name + 1) as u32;
            let (found, cost) = (cost_of(&claims, value), costs[&value]);
            assert!(f64::from(found) > 0.9 * f64::from(cost), "{found} of {cost}");
        }
    }

    #[test]
    fn a_verdict_lasts_until_the_next_and_goes_with_its_claimant() {
        let mut claims = Claims::new();
        claims.record(4, 100);
        let judged = claims.judge(1.0, 1.0, |weighed, _, _| weighed.rate > 50.0);
        assert_eq!(judged, Judged { claimants: 1, over: 1, nearly_over: 0, newly_over_us: 100.0 });
        assert!(claims.record(4, 1) && !claims.record(5, 1));
        claims.decay(0.0, 1.0);
        assert!(!claims.record(4, 1));
    }

    #[test]
    fn views_of_people_are_weight() {
        let mut claims = Claims::new();
        claims.count_view(4);
        claims.record(4, 100);
        (0..30).for_each(|_| claims.count_view(4));
        assert_eq!(claims.weigh(1.0, 10.0).next(), Some(Weighed { rate: 100.0, weight: 3.0 }));
        assert_eq!(claims.weigh(1.0, 100.0).next(), Some(Weighed { rate: 100.0, weight: 1.0 }));
    }
}
