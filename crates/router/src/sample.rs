//! The planner's input of an interval: from the gate's counters and what was observed behind it.
//!
//! The two see different things. The gate sees every new connection, those it refuses too; the observer
//! stands behind it and sees only what was let in, but knows every destination and distinguishes a repeated
//! SYN of a connection that was let in (its answer was lost, or is late) from a new one.
//!
//! | the planner's word | from |
//! |---|---|
//! | offered | the gate: every SYN |
//! | unique offered | the gate's (without repeated SYNs of those it refused), less repeated SYNs of those it let in |
//! | admitted | the gate's, less the same |
//! | completed, responses | the observer |
//! | hosts | the gate where a destination has its own place; else what was let in, scaled up by what the gate refused at that place: its bucket refuses without looking at destinations |

use crate::destinations::Destinations;
use crate::places::Places;
use flashweir_admission::Flow;
use flashweir_admission::flash_crowd::{Counted, HostCount, RateCell, Sample};
use flashweir_core::Instant;
use flashweir_core::kernel_counts::GateCounts;
use flashweir_core::limits::HOT_SPOT_ENTRIES;
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
    /// Number refused.
    pub(crate) fn refused(self) -> u64 {
        self.offered.saturating_sub(self.admitted)
    }

    fn of(counts: &GateCounts) -> Self {
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

    /// The gate and the observer began to tell connections by a plan: what begins from now on was admitted
    /// under it.
    pub(crate) fn plan_changed(&mut self, now: Instant) {
        self.evidence_from = now;
    }

    /// The counts since the last sample. `counts` are the gate's, by place, as they stand now.
    pub(crate) fn sample(
        &mut self,
        now: Instant,
        counts: &[GateCounts],
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
        let sample = Sample {
            gate: 0,
            from: std::mem::replace(&mut self.from, now),
            to: now,
            flow: Flow {
                offered: all.offered,
                admitted: all.admitted.saturating_sub(repeated),
                refused_by_self: all.refused(),
                ..Flow::default()
            },
            unique_offered: all.unique_offered.saturating_sub(repeated),
            entered: all.admitted.saturating_sub(repeated),
            handed_over: 0,
            completed: observed.completed,
            // Connections that end otherwise are not observed.
            unfinished: 0,
            hosts: hosts.collect(),
            // The kernel classified connections by the plan that it followed, and that plan is dated by its
            // arrival in the kernel.
            evidence_from: self.evidence_from,
            rates: rate_cells(&observed.rates),
            // How long a response should take is not known here.
            latencies: Vec::new(),
            responses_unclassed: 0,
        };
        Sampled { sample, destinations: figures }
    }

    /// Discards the counts until now: they were offered to another process, whose gate was taken over.
    pub(crate) fn begin_after(&mut self, counts: &[GateCounts]) {
        self.count(counts);
    }

    fn count(&mut self, counts: &[GateCounts]) -> Vec<PlaceCounts> {
        self.counted.resize(self.counted.len().max(counts.len()), PlaceCounts::default());
        let places = counts.iter().zip(&mut self.counted);
        places
            .map(|(counts, before)| {
                let now = PlaceCounts::of(counts);
                now.since(std::mem::replace(before, now))
            })
            .collect()
    }
}

/// The kernel's histograms as they are: it counts by the buckets of samples.
fn rate_cells([before, since]: &[RateHistogram; 2]) -> Vec<RateCell> {
    let pairs = before.counts().iter().zip(since.counts()).enumerate();
    let used = pairs.filter(|(_, (before, since))| **before > 0 || **since > 0);
    // There are 960 buckets: the cast loses nothing.
    used.map(|(bucket, (&before, &since))| RateCell {
        bucket: bucket as u16,
        count: Counted { before, since },
    })
    .collect()
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

/// Estimate for a destination of which only admitted connections are known: scaled up by the factor at the
/// place it shares.
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
