//! What the planner is told of an interval: from the gate's counters and what was observed behind it.
//!
//! The two see different things. The gate sees every new connection, those it refuses too; the observer stands behind it
//! and sees only what was let in, but knows every destination and tells a repeated SYN of a connection that was let in
//! (its answer was lost, or is late) from a new one.
//!
//! | the planner's word | from |
//! |---|---|
//! | offered | the gate: every SYN |
//! | unique offered | the gate's (without repeated SYNs of those it refused), less repeated SYNs of those it let in |
//! | admitted | the gate's, less the same |
//! | completed, responses | the observer |
//! | hosts | the gate where a destination has a place of its own; else what was let in, scaled up by what the gate refused at that place: its bucket refuses without looking at destinations |

use crate::destinations::Destinations;
use crate::places::Places;
use crate::responses::{Group, unfold};
use flashweir_admission::flash_crowd::{HostCount, Sample};
use flashweir_core::limits::HOT_SPOT_ENTRIES;
use flashweir_core::{Duration, Instant};
use flashweir_kernel::gate::ServiceCounts;
use flashweir_kernel::observe::{DestinationCount, Observed, RateHistogram};
use std::cmp::Reverse;
use std::net::SocketAddr;

/// Remembers what was counted until the last sample.
#[derive(Debug)]
pub(crate) struct Sampler {
    from: Instant,
    /// By place; places come and go, their counters stay.
    counted: Vec<PlaceCounts>,
    evidence_from: Instant,
}

/// A sample, and its new connections by destination for people.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sampled {
    pub(crate) sample: Sample,
    pub(crate) destinations: Vec<DestinationFigures>,
}

/// New connections of one destination within an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DestinationFigures {
    pub(crate) destination: SocketAddr,
    pub(crate) counts: PlaceCounts,
}

/// New connections at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlaceCounts {
    pub(crate) offered: u64,
    pub(crate) unique_offered: u64,
    pub(crate) admitted: u64,
}

impl PlaceCounts {
    /// What was refused.
    pub(crate) fn refused(self) -> u64 {
        self.offered.saturating_sub(self.admitted)
    }

    fn of(counts: &ServiceCounts) -> Self {
        Self { offered: counts.offered, unique_offered: counts.unique_offered, admitted: counts.admitted }
    }

    /// Counters only grow; if one did not, nothing was counted.
    fn since(self, before: Self) -> Self {
        Self {
            offered: self.offered.saturating_sub(before.offered),
            unique_offered: self.unique_offered.saturating_sub(before.unique_offered),
            admitted: self.admitted.saturating_sub(before.admitted),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            offered: self.offered + other.offered,
            unique_offered: self.unique_offered + other.unique_offered,
            admitted: self.admitted + other.admitted,
        }
    }
}

impl Sampler {
    pub(crate) fn new(now: Instant) -> Self {
        Self { from: now, counted: Vec::new(), evidence_from: Instant::ZERO }
    }

    /// The gate and the observer began to tell connections by a plan: what begins from now on was admitted under it.
    pub(crate) fn plan_changed(&mut self, now: Instant) {
        self.evidence_from = now;
    }

    /// What happened since the last sample. `counts` are the gate's, by place, as they stand now.
    pub(crate) fn sample(
        &mut self,
        now: Instant,
        counts: &[ServiceCounts],
        observed: &Observed,
        places: &Places,
        destinations: &mut Destinations,
    ) -> Sampled {
        let counted: Vec<PlaceCounts> = self.count(counts);
        let all = counted.iter().copied().fold(PlaceCounts::default(), PlaceCounts::plus);
        let repeated = observed.offered.saturating_sub(observed.unique_offered);
        let figures = by_destination(&counted, observed, places);
        let hosts = figures.iter().take(HOT_SPOT_ENTRIES).map(|figures| HostCount {
            key: destinations.key(figures.destination),
            hits: figures.counts.offered,
        });
        let (responses, responses_sampled_away) = unfold(&self.groups(observed));
        let sample = Sample {
            gate: 0,
            from: std::mem::replace(&mut self.from, now),
            to: now,
            offered: all.offered,
            unique_offered: all.unique_offered.saturating_sub(repeated),
            admitted: all.admitted.saturating_sub(repeated),
            refused_earlier: 0,
            withdrawn: 0,
            completed: observed.completed,
            hosts: hosts.collect(),
            responses,
            responses_sampled_away,
        };
        Sampled { sample, destinations: figures }
    }

    /// What was counted until now was offered to somebody else: the process whose gate was taken over.
    pub(crate) fn begin_after(&mut self, counts: &[ServiceCounts]) {
        self.count(counts);
    }

    fn count(&mut self, counts: &[ServiceCounts]) -> Vec<PlaceCounts> {
        self.counted.resize(self.counted.len().max(counts.len()), PlaceCounts::default());
        let places = counts.iter().zip(&mut self.counted);
        places
            .map(|(counts, before)| {
                let now = PlaceCounts::of(counts);
                now.since(std::mem::replace(before, now))
            })
            .collect()
    }

    /// A connection that began before the plan changed says nothing about the plan in force: it is dated one nanosecond
    /// before, the planner compares no more than that.
    fn groups(&self, observed: &Observed) -> Vec<Group> {
        let before = self.evidence_from - Duration::from_nanos(1);
        let [old, new] = &observed.rates;
        [(old, before), (new, self.evidence_from)]
            .into_iter()
            .flat_map(|(rates, started)| groups(rates, started))
            .collect()
    }
}

fn groups(rates: &RateHistogram, started: Instant) -> impl Iterator<Item = Group> {
    rates.buckets().map(move |bucket| Group {
        rate_bytes_per_s: bucket.middle(),
        count: u64::from(bucket.responses),
        started,
    })
}

/// The busiest first, at most as many as there are places and observed destinations.
fn by_destination(counted: &[PlaceCounts], observed: &Observed, places: &Places) -> Vec<DestinationFigures> {
    let at_places = counted.iter().enumerate().filter_map(|(place, &counts)| {
        places.destination(place).map(|destination| DestinationFigures { destination, counts })
    });
    let elsewhere = observed.destinations.iter().filter(|seen| places.of(seen.destination).is_none());
    let elsewhere = elsewhere.map(|seen| {
        let of_place = places.counted_at(seen.destination).and_then(|place| counted.get(place));
        DestinationFigures { destination: seen.destination, counts: scaled(*seen, of_place) }
    });
    let mut figures: Vec<_> =
        at_places.chain(elsewhere).filter(|figures| figures.counts.offered > 0).collect();
    figures.sort_by_key(|figures| (Reverse(figures.counts.offered), figures.destination));
    figures
}

/// What was offered to a destination of which only what was let in is known: as much more as at the place it shares.
fn scaled(seen: DestinationCount, of_place: Option<&PlaceCounts>) -> PlaceCounts {
    let scale = |count: u64| match of_place {
        Some(place) if place.admitted > 0 && place.offered > place.admitted => {
            let offered = u128::from(count) * u128::from(place.offered) / u128::from(place.admitted);
            u64::try_from(offered).unwrap_or(u64::MAX)
        }
        _ => count,
    };
    PlaceCounts {
        offered: scale(seen.offered),
        unique_offered: scale(seen.unique_offered),
        admitted: seen.offered,
    }
}

#[cfg(test)]
#[path = "sample_tests.rs"]
mod tests;
