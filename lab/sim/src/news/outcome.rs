//! Outcome of a run with NEWS at the router.

use crate::router::{GateCounts, Tick};
use flashweir_admission::flash_crowd::Mode;
use flashweir_core::{Duration, Instant};
use std::ops::Range;

/// Outcome of a run with NEWS at the router.
#[derive(Clone, Debug, PartialEq)]
pub struct NewsOutcome {
    /// Requests by their end, over the whole run.
    pub people: People,
    /// Counts of the router's gate, over the whole run.
    pub gate: GateCounts,
    /// Bin after bin, each of [`NewsOutcome::BIN`].
    pub bins: Vec<Bin>,
    /// Measurements and decisions of the router, interval after interval.
    pub ticks: Vec<Tick>,
    /// Things that happened.
    pub events: u64,
    /// The hash of all of them: the same for the same scenario everywhere.
    pub event_hash: u64,
}

/// Requests, each of another person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct People {
    /// People who came (unique offered).
    pub unique_offered: u64,
    /// Had the whole page before the run ended.
    pub completed: u64,
    /// Never got a connection, however often they tried.
    pub not_connected: u64,
    /// Had a connection that TCP gave up.
    pub given_up: u64,
    /// Left: their patience ended, or the server dropped their request.
    pub abandoned: u64,
    /// Of those who left, the ones whose request the server dropped.
    pub dropped_by_server: u64,
    /// Still there when the run ended.
    pub in_flight: u64,
}

/// Counts of one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// People who came.
    pub unique_offered: u64,
    /// SYNs at the gate.
    pub gate: GateCounts,
    /// Pages that arrived.
    pub completed: u64,
    /// Packets of responses that came to the bottleneck.
    pub response_packets: u64,
    /// Of those, dropped there.
    pub response_packets_lost: u64,
    /// Bytes that the bulk transfer's client received in order.
    pub bulk_bytes: u64,
}

impl NewsOutcome {
    /// Width of the bins.
    pub const BIN: Duration = Duration::from_secs(10);

    /// Sums over the bins that lie within a stretch of time, in seconds from the start.
    #[must_use]
    pub fn total(&self, within_s: Range<u64>) -> Bin {
        self.bins_within(&within_s).iter().fold(Bin::default(), |sum, bin| sum.plus(bin))
    }

    /// A count of [`Bin`] per second over a stretch.
    #[must_use]
    pub fn per_second(&self, within_s: Range<u64>, count: impl Fn(&Bin) -> u64) -> f64 {
        let bins = self.bins_within(&within_s);
        let seconds = bins.len() as f64 * Self::BIN.as_secs_f64();
        if bins.is_empty() { 0.0 } else { bins.iter().map(count).sum::<u64>() as f64 / seconds }
    }

    /// Mean of a rate over the ticks within a stretch, bytes/s; none without any.
    #[must_use]
    pub fn mean_rate(&self, within_s: Range<u64>, rate: impl Fn(&Tick) -> Option<f64>) -> Option<f64> {
        let rates: Vec<f64> = self.ticks_within(&within_s).filter_map(rate).collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    }

    /// The part of response packets that the bottleneck dropped over a stretch.
    #[must_use]
    pub fn response_loss(&self, within_s: Range<u64>) -> f64 {
        let total = self.total(within_s);
        total.response_packets_lost as f64 / (total.response_packets.max(1)) as f64
    }

    /// The first tick from `from_s` on at which the planner was not in its normal mode, in seconds from the
    /// start.
    #[must_use]
    pub fn first_alarm_s(&self, from_s: u64) -> Option<f64> {
        let limits = |tick: &&Tick| tick.explanation.is_some_and(|it| it.mode != Mode::Normal);
        self.ticks
            .iter()
            .filter(|tick| tick.at >= Instant::from_secs(from_s))
            .find(limits)
            .map(|tick| tick.at.as_secs_f64())
    }

    fn bins_within(&self, within_s: &Range<u64>) -> &[Bin] {
        let bin = |second: u64| ((second / Self::BIN.as_secs()) as usize).min(self.bins.len());
        let (from, to) = (bin(within_s.start), bin(within_s.end));
        &self.bins[from..to.max(from)]
    }

    fn ticks_within(&self, within_s: &Range<u64>) -> impl Iterator<Item = &Tick> {
        let (from, to) = (Instant::from_secs(within_s.start), Instant::from_secs(within_s.end));
        self.ticks.iter().filter(move |tick| tick.at > from && tick.at <= to)
    }
}

impl People {
    /// Returns true if every request is accounted for once.
    pub(super) fn is_conserved(&self) -> bool {
        let Self { completed, not_connected, given_up, abandoned, in_flight, .. } = *self;
        self.unique_offered == completed + not_connected + given_up + abandoned + in_flight
    }
}

impl Bin {
    fn plus(&self, other: &Self) -> Self {
        Self {
            unique_offered: self.unique_offered + other.unique_offered,
            gate: self.gate.plus(&other.gate),
            completed: self.completed + other.completed,
            response_packets: self.response_packets + other.response_packets,
            response_packets_lost: self.response_packets_lost + other.response_packets_lost,
            bulk_bytes: self.bulk_bytes + other.bulk_bytes,
        }
    }
}
