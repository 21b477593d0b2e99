//! Posterior over origins, given the evidence.
//!
//! Unknown are the origin (c, κ), and a scale σ: the base may have been measured under load (σ < 1), or the
//! origin may have become slower (σ > 1). At n in flight times are the base's times s = σ f(n; c, κ), see
//! [`grid`](crate::grid). With D_n and E_n of the evidence
//!
//! ```text
//! ln L(c, κ, σ) = Σ_n w_n [D_n ln E_n(σ f(n; c, κ)) − E_n(σ f(n; c, κ))]
//! ```
//!
//! *Prior.* Every c is as likely as any other. The base fits itself: where it was learned at numbers in
//! flight n with weights a_n, ln σ is normal around −Σ a_n ln f(n; c, κ), with variance 1/Σ learned + ε².
//! After a change of the origin either (c, κ) is as before, or σ, or neither.
//!
//! *Rebase.* A stretch near the end of the grid is a bound, not a value: bases take over a part of it (times
//! of all classes × 2⁴ or × 2⁻⁴), and the prior of (c, κ) is what is believed of them, with every scale as
//! likely as any other.
//!
//! *Change.* Cumulative sums of ln (L of times k as long / L of times as predicted), one for each of six
//! factors k (Page, 1954), the prediction being the posterior's at that number in flight.

use crate::evidence::{Counts, Evidence};
use crate::grid::{CENTRE, LEVELS, Origin, SERVERS, STEP, STRETCHES, level_of, log_stretch, origins};
use crate::numbers::Numbers;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

/// The largest ln f, in steps of stretch: 64 · 1,024 in flight before one server.
const REACH: usize = 80;
/// Functions of a stretch are tabulated at this many points a step.
const FINE: usize = 4;
/// Prior probability that the base is of no use although no change was seen.
const BASE_ODD: f64 = 0.02;
/// Less likely origins are left out of sums.
const NEGLIGIBLE: f64 = 3e-4;
/// Logarithm of a probability, relative to the likeliest, that counts as 0.
const FAR: f32 = -14.0;
/// Factors of change, in steps of stretch: about e, its root and √2, up and down.
const FACTORS: [i32; 6] = [-6, -3, -2, 2, 3, 6];
const FACTOR_MAX: usize = 6;

/// One number for each scale.
type Row = [f32; STRETCHES];

/// A function of ln s as a table, for sums over scales that differ by whole steps.
#[derive(Debug)]
pub(crate) struct Tabulated(Box<[[f32; REACH + STRETCHES + 1]; FINE]>);

impl Tabulated {
    /// Evaluates the function at each point of the table.
    pub(crate) fn new(function: impl Fn(f64) -> f64) -> Self {
        let mut phases = Box::new([[0.0; REACH + STRETCHES + 1]; FINE]);
        for (phase, table) in phases.iter_mut().enumerate() {
            for (at, value) in table.iter_mut().enumerate() {
                let steps = at as f64 - REACH as f64 + phase as f64 / FINE as f64;
                *value = function((CENTRE as f64 - steps) * STEP) as f32;
            }
        }
        Self(phases)
    }

    /// Σ weight · function(ln σ + `log`) over scales.
    fn sum(&self, weights: &Row, log: f64) -> f64 {
        let steps = (REACH as f64 - log / STEP).clamp(0.0, (REACH + 1) as f64 - 1e-3) * FINE as f64;
        // Through u32: that takes one instruction, through u64 several.
        let low = steps as u32 as usize;
        let part = (steps - low as f64) as f32;
        let row = |at: usize| &self.0[at % FINE][at / FINE..at / FINE + STRETCHES];
        let (low, high) = (row(low), row(low + 1));
        let term = |at: usize| weights[at] * (low[at] + (high[at] - low[at]) * part);
        // Four sums at once do not wait for each other.
        let mut sums = [0.0_f32, 0.0, 0.0, term(STRETCHES - 1)];
        for first in (0..STRETCHES - 1).step_by(sums.len()) {
            sums.iter_mut().enumerate().for_each(|(lane, sum)| *sum += term(first + lane));
        }
        sums.iter().sum::<f32>().into()
    }
}

/// Distribution over origins and scales.
#[derive(Debug)]
pub struct Posterior {
    numbers: Numbers,
    origins: Vec<Origin>,
    /// ln f of each origin at each level, steps of stretch.
    stretches: Vec<[f32; LEVELS]>,
    /// Logarithms of the prior after a change, by origin and scale; none before the first change.
    changed: Vec<Row>,
    /// Log-density of ln σ around where the base fits itself, for a variance.
    base: Tabulated,
    base_variance: f64,
    /// Probability of each origin and scale, and the scales of each origin that are possible.
    probabilities: Vec<Row>,
    possible: Vec<Range<usize>>,
    /// Probability of each origin, and mean of ln σ given it.
    marginal: Vec<f64>,
    log_scale: Vec<f64>,
    scales: [f64; STRETCHES],
    sums: [f64; FACTORS.len()],
    chunk: Counts,
    chunk_level: usize,
}

impl Posterior {
    /// The prior.
    #[must_use]
    pub fn new(numbers: Numbers) -> Self {
        let origins = origins();
        let at_level = |origin: &Origin, level: usize| {
            let log = level as f64 * STEP;
            (origin.log_f(libm::exp(log), log) / STEP).min(REACH as f64 - 1.0) as f32
        };
        let stretches = origins.iter().map(|origin| core::array::from_fn(|level| at_level(origin, level)));
        let mut posterior = Self {
            numbers,
            stretches: stretches.collect(),
            probabilities: alloc::vec![[0.0; STRETCHES]; origins.len()],
            possible: alloc::vec![0..0; origins.len()],
            marginal: alloc::vec![0.0; origins.len()],
            log_scale: alloc::vec![0.0; origins.len()],
            origins,
            changed: Vec::new(),
            base: Tabulated::new(|_| 0.0),
            base_variance: f64::INFINITY,
            scales: [0.0; STRETCHES],
            sums: [0.0; FACTORS.len()],
            chunk: Counts::ZERO,
            chunk_level: 0,
        };
        posterior.observe(&Evidence::new(numbers));
        posterior
    }

    /// Computes the distribution under all evidence. O(origins · levels · stretches).
    pub fn observe(&mut self, evidence: &Evidence) {
        let error = self.numbers.model_error;
        let known = evidence.levels.iter().enumerate().filter(|(_, counts)| counts.is_evidence());
        let tables: Vec<(usize, Box<[f32; REACH + STRETCHES]>)> = known
            .map(|(level, counts)| {
                let logs = counts.log_likelihoods(error);
                let mut table = Box::new([logs[0]; REACH + STRETCHES]);
                table[REACH..].copy_from_slice(&logs);
                (level, table)
            })
            .collect();
        let learned_at: Vec<(usize, f64)> = evidence.learned_at().collect();
        let variance = 1.0 / (evidence.learned() + self.numbers.enough) + error * error + 0.25 * STEP * STEP;
        if (self.base_variance / variance - 1.0).abs() > VARIANCE_ROUGH {
            self.base_variance = variance;
            self.base = Tabulated::new(|log| {
                let density = libm::exp(-0.5 * log * log / variance) * STEP
                    / libm::sqrt(2.0 * core::f64::consts::PI * variance);
                libm::log((1.0 - BASE_ODD) * density + BASE_ODD / STRETCHES as f64)
            });
        }
        let mut most = [f32::NEG_INFINITY; STRETCHES];
        let mut probabilities = core::mem::take(&mut self.probabilities);
        for (at, logs) in probabilities.iter_mut().enumerate() {
            *logs = self.log_priors(at, &learned_at);
            for (level, table) in &tables {
                let shift = self.stretches[at][*level];
                let whole = shift as usize;
                let part = shift - whole as f32;
                let row = &table[REACH - whole - 1..REACH - whole + STRETCHES];
                for (sum, pair) in logs.iter_mut().zip(row.windows(2)) {
                    *sum += part * pair[0] + (1.0 - part) * pair[1];
                }
            }
            most.iter_mut().zip(logs).for_each(|(most, log)| *most = if *log > *most { *log } else { *most });
        }
        self.probabilities = probabilities;
        self.normalise(most.into_iter().fold(f32::NEG_INFINITY, f32::max));
    }

    fn log_priors(&self, at: usize, learned_at: &[(usize, f64)]) -> Row {
        if let Some(logs) = self.changed.get(at) {
            return *logs;
        }
        let origin = &self.origins[at];
        let mut logs = [0.0; STRETCHES];
        // ln σ + Σ a_n ln f is normal around 0.
        let steps: f64 =
            learned_at.iter().map(|(level, part)| part * f64::from(self.stretches[at][*level])).sum();
        let from = ((REACH as f64 - steps).max(0.0) * FINE as f64 + 0.5) as usize;
        let row = &self.base.0[from % FINE][from / FINE..];
        logs.iter_mut().zip(row).for_each(|(log, value)| *log = value + origin.log_prior as f32);
        logs
    }

    /// Takes what is believed now as the prior of a changed origin: it is as before, or its scale is, or
    /// neither.
    fn change(&mut self) {
        let each = 1.0 / STRETCHES as f64;
        self.changed.resize(self.origins.len(), [0.0; STRETCHES]);
        for ((row, origin), before) in self.changed.iter_mut().zip(&self.origins).zip(&self.marginal) {
            let prior = libm::exp(origin.log_prior);
            let any = self.numbers.model_error * prior * each;
            for (log, scale) in row.iter_mut().zip(self.scales) {
                *log = libm::logf((before * each + prior * scale + any) as f32);
            }
        }
    }

    fn normalise(&mut self, most: f32) {
        self.scales = [0.0; STRETCHES];
        let log_stretches: [f64; STRETCHES] = core::array::from_fn(log_stretch);
        let mut all = 0.0;
        for (at, (row, possible)) in self.probabilities.iter_mut().zip(&mut self.possible).enumerate() {
            let is_possible = |log: &f32| *log - most > FAR;
            let first = row.iter().position(is_possible).unwrap_or(0);
            *possible = first..row.iter().rposition(is_possible).map_or(0, |last| last + 1);
            row[..possible.start].fill(0.0);
            row[possible.end..].fill(0.0);
            let row = &mut row[possible.clone()];
            for log in &mut *row {
                *log = if is_possible(log) { libm::expf(*log - most) } else { 0.0 };
            }
            let (mut sum, mut logs) = (0.0, 0.0);
            for (index, probability) in possible.clone().zip(row.iter().copied().map(f64::from)) {
                sum += probability;
                logs += probability * log_stretches[index];
                self.scales[index] += probability;
            }
            self.marginal[at] = sum;
            self.log_scale[at] = if sum > 0.0 { logs / sum } else { 0.0 };
            all += sum;
        }
        let part = (1.0 / all) as f32;
        for (row, possible) in self.probabilities.iter_mut().zip(&self.possible) {
            row[possible.clone()].iter_mut().for_each(|probability| *probability *= part);
        }
        self.marginal.iter_mut().chain(self.scales.iter_mut()).for_each(|probability| *probability /= all);
    }

    /// Takes a tick for the test for change; forgets what is known where the origin is another one. Returns
    /// whether it is. O(likely pairs).
    pub fn is_changed(&mut self, evidence: &mut Evidence) -> bool {
        let level = level_of(evidence.aged_at);
        if level.abs_diff(self.chunk_level) > 1 {
            (self.chunk, self.chunk_level) = (Counts::ZERO, level);
        }
        self.chunk.add(&evidence.tick);
        let centre = self.chunk.expected[CENTRE].min(self.chunk.expected[self.index_at(evidence.aged_at)]);
        if f64::from(self.chunk.completed + centre) < 2.0 * self.numbers.enough {
            return false;
        }
        let chunk = core::mem::replace(&mut self.chunk, Counts::ZERO);
        let predicted = self.predicted(evidence.aged_at);
        let logs = chunk.log_likelihoods(self.numbers.model_error);
        let likelihoods: [f64; STRETCHES + 2 * FACTOR_MAX] = core::array::from_fn(|at| {
            libm::expf(logs[at.saturating_sub(FACTOR_MAX).min(STRETCHES - 1)]).into()
        });
        let evidence_of = |steps: i32| -> f64 {
            let shifted = &likelihoods[(FACTOR_MAX as i32 + steps) as usize..];
            let sum: f64 = predicted.iter().zip(shifted).map(|(part, likelihood)| part * likelihood).sum();
            libm::log(sum.max(1e-30))
        };
        let usual = evidence_of(0);
        for (sum, factor) in self.sums.iter_mut().zip(FACTORS) {
            *sum = (*sum + (evidence_of(factor) - usual).min(self.numbers.alarm / 2.0)).max(0.0);
        }
        let highest = self.sums.iter().copied().fold(0.0, f64::max);
        if highest < self.numbers.alarm {
            return false;
        }
        self.sums = [0.0; FACTORS.len()];
        self.change();
        evidence.forget(&chunk);
        true
    }

    /// Takes what is believed of the origin as the prior, at any scale: bases have other times from now on.
    pub(crate) fn rebase(&mut self) {
        self.sums = [0.0; FACTORS.len()];
        self.chunk = Counts::ZERO;
        self.changed.resize(self.origins.len(), [0.0; STRETCHES]);
        for ((row, origin), before) in self.changed.iter_mut().zip(&self.origins).zip(&self.marginal) {
            let prior = libm::exp(origin.log_prior);
            row.fill(libm::logf((before + self.numbers.model_error * prior) as f32));
        }
    }

    /// Probabilities of the stretches at a number in flight, a little smoothed.
    fn predicted(&self, in_flight: f64) -> [f64; STRETCHES] {
        let mut parts = [0.0; STRETCHES];
        self.for_each(in_flight, |at, log| {
            let steps = log / STEP;
            let whole = steps as u32 as usize;
            let part = (steps - whole as f64) as f32;
            let Range { start, end } = self.possible[at];
            let row = &self.probabilities[at];
            // Larger stretches than the largest count as that.
            let inner = (whole + 1).clamp(start, end);
            for probability in &row[start..inner] {
                parts[0] += probability * (1.0 - part);
                parts[0] += probability * part;
            }
            if inner < end {
                add(&mut parts[inner - whole..], &row[inner..end], 1.0 - part);
                add(&mut parts[inner - whole - 1..], &row[inner..end], part);
            }
        });
        let mut smooth = [0.0; STRETCHES];
        for (index, part) in parts.into_iter().map(f64::from).enumerate() {
            smooth[index.saturating_sub(1)] += 0.25 * part;
            smooth[index] += 0.5 * part;
            smooth[(index + 1).min(STRETCHES - 1)] += 0.25 * part;
        }
        smooth
    }

    fn index_at(&self, in_flight: f64) -> usize {
        let at = CENTRE as f64 - self.log_stretch(in_flight) / STEP + 0.5;
        at.clamp(0.0, (STRETCHES - 1) as f64) as usize
    }

    /// Calls `each` with every origin that is not negligible and its ln f, interpolated between levels.
    fn for_each(&self, in_flight: f64, mut each: impl FnMut(usize, f64)) {
        let at_level = (libm::log(in_flight.max(1.0)) / STEP).min((LEVELS - 1) as f64 - 1e-6);
        let level = at_level as u32 as usize;
        let part = at_level - level as f64;
        for (at, stretches) in self.stretches.iter().enumerate() {
            if self.marginal[at] > NEGLIGIBLE {
                let (low, high) = (f64::from(stretches[level]), f64::from(stretches[level + 1]));
                each(at, (low + (high - low) * part) * STEP);
            }
        }
    }

    /// Mean of a function of ln s at a number in flight. O(origins · [`STRETCHES`]).
    pub(crate) fn mean(&self, in_flight: f64, function: &Tabulated) -> f64 {
        let mut mean = 0.0;
        self.for_each(in_flight, |at, log| {
            mean += function.sum(&self.probabilities[at], log);
        });
        mean
    }

    /// Probability that requests slow each other by this factor at a number in flight. O(origins).
    pub(crate) fn shortage(&self, in_flight: f64, factor: f64) -> f64 {
        let (mut short, log) = (0.0, libm::log(factor));
        self.for_each(in_flight, |at, log_f| short += if log_f > log { self.marginal[at] } else { 0.0 });
        short
    }

    /// Mean of ln s at a number in flight. O(origins).
    pub(crate) fn log_stretch(&self, in_flight: f64) -> f64 {
        let mut mean = 0.0;
        self.for_each(in_flight, |at, log| mean += self.marginal[at] * (self.log_scale[at] + log));
        mean
    }

    /// Time that a request takes alone, over its base: less than 1 where the base was measured under load.
    #[must_use]
    pub fn scale(&self) -> f64 {
        libm::exp(self.marginal.iter().zip(&self.log_scale).map(|(part, log)| part * log).sum())
    }

    /// Returns true if the origin has been found to be another one than at first.
    pub(crate) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Time that a request takes at a number in flight, over its base.
    #[must_use]
    pub fn stretch(&self, in_flight: f64) -> f64 {
        libm::exp(self.log_stretch(in_flight))
    }

    /// The number of servers (its geometric mean), and the standard deviation of its logarithm.
    #[must_use]
    pub fn servers(&self) -> (f64, f64) {
        let (mut mean, mut squares) = (0.0, 0.0);
        for (origin, part) in self.origins.iter().zip(&self.marginal) {
            mean += part * origin.log_servers;
            squares += part * origin.log_servers * origin.log_servers;
        }
        (libm::exp(mean), libm::sqrt((squares - mean * mean).max(0.0)))
    }

    /// The number of servers that there are more of with a probability of 1 − `share`.
    #[must_use]
    pub fn servers_quantile(&self, share: f64) -> f64 {
        let mut by_servers = [0.0; SERVERS];
        for (origin, part) in self.origins.iter().zip(&self.marginal) {
            by_servers[(origin.log_servers / STEP + 0.5) as usize] += part;
        }
        let mut below = 0.0;
        let at = by_servers.iter().position(|part| {
            below += part;
            below >= share
        });
        libm::exp(at.unwrap_or(SERVERS - 1) as f64 * STEP)
    }
}

/// Adds `factor` times the values.
fn add(sums: &mut [f32], values: &[f32], factor: f32) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value * factor);
}

/// The prior of σ is computed again once its variance has changed by this part.
const VARIANCE_ROUGH: f64 = 0.02;
