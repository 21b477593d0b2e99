//! Choice of the server for a request: one of the document's hosts, chosen by one of five policies.
//!
//! | policy | from which inputs | between two reports |
//! |---|---|---|
//! | [`AcdnWeights`] | the servers' reported loads | fixed probabilities |
//! | [`Integrator`] | the servers' reported loads | fixed probabilities |
//! | [`WaterFilling`] | this redirector's rates of flexible and exclusive documents | fixed probabilities |
//! | [`TwoChoices`] (default) | this redirector's own recent choices | follows each choice |
//! | [`BoundedLoad`] | the same, and the document's hash | follows each choice |
//!
//! The first three are updated by [`Distribution::update`] once for each round of reports; all five are asked
//! for each request. A choice allocates nothing and reads no clock: `shares` says which servers are usable
//! ([`ServerTable`](crate::servers)).

mod acdn;
mod bounded_load;
mod draw;
mod integrator;
mod two_choices;
mod water_filling;

pub use acdn::AcdnWeights;
pub use bounded_load::BoundedLoad;
pub use integrator::Integrator;
pub use two_choices::TwoChoices;
pub(crate) use two_choices::two_of;
pub use water_filling::{WaterFilling, fill};

use crate::SettingsError;
use crate::placement::Watermarks;
use crate::servers::ServerIndex;
use flashweir_core::measure::DecayedCounters;
use flashweir_core::{Duration, Instant, Rng};

/// A policy, as settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// ACDN as published; with `memory` > 0 the new weights are averaged with the old ones, `w ← memory·w +
    /// (1 − memory)·new`.
    Acdn {
        /// The weight of the old weights, from 0 (as published) to below 1.
        memory: f64,
    },
    /// The multiplicative integrator.
    Integrator {
        /// κ, 0.01 to 1; 0.6 in docs/algorithms/replication.md.
        gain: f64,
    },
    /// Water-filling.
    WaterFilling,
    /// Power of two choices.
    TwoChoices,
    /// Bounded-load consistent hashing.
    BoundedLoad {
        /// ε: how far above its fair part a server may be, 0.01 to 10; 0.25 in the literature.
        excess: f64,
    },
}

/// The age at which a choice counts 1/e in the counters: shorter than the interval of any report, longer than
/// the gaps between the requests of a redirector that is worth balancing.
pub const COUNTER_TAU: Duration = Duration::from_secs(1);

/// Load of a server when weights are updated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerLoad {
    /// Reported load, requests per second, over the server's weight.
    pub load_rps: f64,
    /// Load of the documents that only this server hosts, by this redirector's counts, requests per second.
    pub exclusive_rps: f64,
    /// Capacity in reference servers; zero: it is out.
    pub weight: f64,
}

/// A policy at work: its weights, and the counters of its choices.
#[derive(Clone, Debug)]
pub struct Distribution {
    rule: Rule,
    counters: DecayedCounters,
}

#[derive(Clone, Debug)]
enum Rule {
    Acdn(AcdnWeights),
    Integrator(Integrator),
    WaterFilling(WaterFilling),
    TwoChoices(TwoChoices),
    BoundedLoad(BoundedLoad),
}

impl Distribution {
    /// The policy, without servers.
    ///
    /// # Errors
    /// [`SettingsError`] for a number out of the range that [`Policy`] names.
    pub fn new(policy: Policy, watermarks: Watermarks) -> Result<Self, SettingsError> {
        let rule = match policy {
            Policy::Acdn { memory } => Rule::Acdn(AcdnWeights::new(watermarks, memory)?),
            Policy::Integrator { gain } => Rule::Integrator(Integrator::new(watermarks, gain)?),
            Policy::WaterFilling => Rule::WaterFilling(WaterFilling::default()),
            Policy::TwoChoices => Rule::TwoChoices(TwoChoices),
            Policy::BoundedLoad { excess } => Rule::BoundedLoad(BoundedLoad::new(excess)?),
        };
        Ok(Self { rule, counters: DecayedCounters::new(0, COUNTER_TAU) })
    }

    /// A server more, with the next index.
    pub fn add_server(&mut self) {
        self.counters.add_owner();
        match &mut self.rule {
            Rule::Acdn(rule) => rule.add_server(),
            Rule::Integrator(rule) => rule.add_server(),
            Rule::WaterFilling(rule) => rule.add_server(),
            Rule::TwoChoices(_) | Rule::BoundedLoad(_) => {}
        }
    }

    /// Updates the weights; `flexible_rps` is the load of documents with more than one host. Call it when
    /// every usable server has reported, not for each report: the integrator would take one deviation for
    /// several. O(servers · log servers).
    pub fn update(&mut self, loads: &[ServerLoad], flexible_rps: f64) {
        match &mut self.rule {
            Rule::Acdn(rule) => rule.update(loads),
            Rule::Integrator(rule) => rule.update(loads),
            Rule::WaterFilling(rule) => rule.update(loads, flexible_rps),
            Rule::TwoChoices(_) | Rule::BoundedLoad(_) => {}
        }
    }

    /// One of `hosts` whose share is above zero, or none. The choice is counted. No allocation; O(1) for two
    /// choices (O(hosts) where one of the two is out), O(hosts) for the others.
    pub fn choose(
        &mut self,
        now: Instant,
        document: u64,
        hosts: &[ServerIndex],
        shares: &[u32],
        rng: &mut Rng,
    ) -> Option<ServerIndex> {
        let candidates = Candidates { hosts, shares };
        let chosen = match &self.rule {
            Rule::Acdn(rule) => candidates.draw(|server| rule.weight(server), rng),
            Rule::Integrator(rule) => candidates.draw(|server| rule.weight(server), rng),
            Rule::WaterFilling(rule) => candidates.draw(|server| rule.weight(server), rng),
            Rule::TwoChoices(rule) => rule.choose(&candidates, &self.counters, rng),
            Rule::BoundedLoad(rule) => rule.choose(document, &candidates, &self.counters),
        }?;
        self.counters.add(now, usize::from(chosen));
        Some(chosen)
    }

    /// The probability of each host under a policy with fixed weights; none for those that follow each
    /// choice.
    pub fn probabilities<'a>(
        &'a self,
        hosts: &'a [ServerIndex],
        shares: &'a [u32],
    ) -> Option<impl Iterator<Item = f64> + 'a> {
        let weight = move |server| match &self.rule {
            Rule::Acdn(rule) => rule.weight(server),
            Rule::Integrator(rule) => rule.weight(server),
            Rule::WaterFilling(rule) => rule.weight(server),
            Rule::TwoChoices(_) | Rule::BoundedLoad(_) => 0,
        };
        let is_fixed = !matches!(self.rule, Rule::TwoChoices(_) | Rule::BoundedLoad(_));
        is_fixed.then(|| Candidates { hosts, shares }.probabilities(weight))
    }

    /// This redirector's recent choices of a server, requests per second.
    #[must_use]
    pub fn rate_rps(&self, now: Instant, server: ServerIndex) -> f64 {
        self.counters.rate_rps(now, usize::from(server))
    }

    /// `server` got a copy of a document whose other hosts are `hosts`: it starts at the level of the least
    /// loaded of them.
    ///
    /// A newcomer at zero would get every request until it has as many as the others: another herd, for `τ·ln
    /// 2` and at the full rate of the crowd. At their level it gets its part from the first request on.
    pub fn enter(&mut self, server: ServerIndex, hosts: &[ServerIndex], shares: &[u32]) {
        let candidates = Candidates { hosts, shares };
        let others = candidates.usable().filter(|&(other, _)| other != server);
        let least = others.map(|(other, share)| {
            u128::from(self.counters.scaled(usize::from(other))) * u128::from(SCALE) / u128::from(share)
        });
        let share = shares.get(usize::from(server)).copied().unwrap_or(0);
        if let Some(level) = least.min() {
            let scaled = level * u128::from(share) / u128::from(SCALE);
            let scaled = u64::try_from(scaled).unwrap_or(u64::MAX);
            let index = usize::from(server);
            self.counters.set_scaled(index, scaled.max(self.counters.scaled(index)));
        }
    }
}

/// Keeps the division by a share exact enough.
const SCALE: u32 = 1 << 10;

/// The hosts of a document, and which of them are usable.
#[derive(Clone, Copy, Debug)]
struct Candidates<'a> {
    hosts: &'a [ServerIndex],
    shares: &'a [u32],
}

impl Candidates<'_> {
    /// Zero: out, or unknown.
    fn share(&self, server: ServerIndex) -> u32 {
        self.shares.get(usize::from(server)).copied().unwrap_or(0)
    }

    fn usable(&self) -> impl Iterator<Item = (ServerIndex, u32)> {
        self.hosts.iter().map(|&server| (server, self.share(server))).filter(|&(_, share)| share > 0)
    }
}
