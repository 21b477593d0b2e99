//! Grids: times, stretches, numbers in flight, and origins.
//!
//! An *origin* is a pair (c, κ): c servers and a contention κ by which each request in flight slows all
//! others. With n requests in flight it stretches times by
//!
//! ```text
//! f(n; c, κ) = (1 + (n/c)⁸)^⅛ · (1 + κ (n − 1))
//! ```
//!
//! 1 below the knee at n = c, rising like n/c above it, rounded a little because real knees are.

use alloc::vec::Vec;

/// Bins of time: eight an octave, from 0.1 ms to 7 hours. Shorter times count as the first bin, longer ones
/// as the last.
pub const TIME_BINS: usize = 224;
/// Bins of time an octave.
pub(crate) const BINS_AN_OCTAVE: f64 = 8.0;
const TIME_MIN_S: f64 = 1e-4;

/// Stretches s = 2^((CENTRE − i)/4): index 0 is 64, the last 1/64. Falling, so that the expected completions
/// of a bin of time at all stretches are neighbours in the table of hazards.
pub(crate) const STRETCHES: usize = 49;
pub(crate) const CENTRE: usize = 24;
/// Natural logarithm of the step between two stretches.
pub(crate) const STEP: f64 = core::f64::consts::LN_2 / 4.0;

/// Numbers in flight, quarter octaves.
pub(crate) const LEVELS: usize = 66;
/// Numbers of servers, from 1 to 8,192 in quarter octaves.
pub(crate) const SERVERS: usize = 53;
/// Contentions κ, and the prior probability of each.
const CONTENTIONS: [(f64, f64); 6] =
    [(0.0, 0.6), (0.002, 0.1), (0.005, 0.1), (0.01, 0.08), (0.02, 0.07), (0.05, 0.05)];
/// Largest c · κ: further servers would change nothing.
const SERVERS_CONTENDED: f64 = 2.0;

/// The bin of a time in seconds.
#[must_use]
pub fn time_bin(seconds: f64) -> usize {
    (position(seconds).max(0.0) as usize).min(TIME_BINS - 1)
}

/// The bin of a time in nanoseconds, by whole numbers. O(1).
#[must_use]
pub const fn time_bin_nanos(nanos: u64) -> usize {
    // Tenths of a millisecond with 16 binary places.
    let nanos = if nanos > NANOS_MAX { NANOS_MAX } else { nanos };
    let tenths = (nanos << 16) / TIME_MIN_NANOS;
    if tenths < 1 << 16 {
        return 0;
    }
    let log = 63 - tenths.leading_zeros();
    let mantissa = (tenths >> (log - 10)) & 1_023;
    let (mut bin, mut eighth) = (8 * (log as usize - 16), 1);
    while eighth < EIGHTHS.len() && mantissa >= EIGHTHS[eighth] {
        bin += 1;
        eighth += 1;
    }
    if bin < TIME_BINS { bin } else { TIME_BINS - 1 }
}

const TIME_MIN_NANOS: u64 = 100_000;
/// Beyond the last bin: longer times would not fit with their binary places.
const NANOS_MAX: u64 = 1 << 47;
/// (2^(k/8) − 1) · 1,024: where the eighths of an octave begin.
const EIGHTHS: [u64; 8] = [0, 93, 194, 304, 425, 556, 699, 855];

/// The middle of a bin of time, seconds.
#[must_use]
pub fn bin_middle_s(bin: usize) -> f64 {
    TIME_MIN_S * MIDDLES[bin % MIDDLES.len()] * f64::from(1_u32 << (bin / MIDDLES.len()))
}

/// 2^((k + ½)/8): the middles of the eighths of an octave.
const MIDDLES: [f64; 8] = [
    1.0442737824274138,
    1.1387886347566916,
    1.241857812073484,
    1.3542555469368927,
    1.4768261459394993,
    1.6104903319492543,
    1.7562521603732995,
    1.9152065613971474,
];

/// Position of a time on the scale of bins; the lower edge of bin b is b.
pub(crate) fn position(seconds: f64) -> f64 {
    BINS_AN_OCTAVE * libm::log2((seconds / TIME_MIN_S).max(1e-9))
}

pub(crate) fn log_stretch(index: usize) -> f64 {
    (CENTRE as f64 - index as f64) * STEP
}

pub(crate) fn level_of(in_flight: f64) -> usize {
    ((4.0 * libm::log2(in_flight.max(1.0)) + 0.5) as usize).min(LEVELS - 1)
}

/// One origin of the grid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// c.
    servers: f64,
    /// ln c.
    pub(crate) log_servers: f64,
    /// κ.
    contention: f64,
    /// Logarithm of the prior probability.
    pub(crate) log_prior: f64,
}

/// All origins, servers first.
pub(crate) fn origins() -> Vec<Origin> {
    let all = (0..SERVERS).flat_map(|servers| CONTENTIONS.map(|contention| (servers, contention)));
    let all = all.map(|(servers, (contention, likely))| Origin {
        servers: libm::exp(servers as f64 * STEP),
        log_servers: servers as f64 * STEP,
        contention,
        log_prior: libm::log(likely / SERVERS as f64),
    });
    all.filter(|origin| origin.servers * origin.contention <= SERVERS_CONTENDED).collect()
}

impl Origin {
    /// ln f(n; c, κ), with ln n given as well.
    pub(crate) fn log_f(&self, in_flight: f64, log_in_flight: f64) -> f64 {
        let over = log_in_flight - self.log_servers;
        let queueing = if over < -1.0 {
            0.0
        } else if over > 1.0 {
            over
        } else {
            let eighth = in_flight / self.servers;
            let eighth = eighth * eighth;
            let eighth = eighth * eighth;
            libm::log1p(eighth * eighth) / 8.0
        };
        if self.contention == 0.0 {
            return queueing;
        }
        queueing + libm::log1p(self.contention * (in_flight - 1.0).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_cover_a_tenth_of_a_millisecond_to_hours() {
        assert_eq!([0.0, 1e-5, 1e-4, 1e9].map(time_bin), [0, 0, 0, TIME_BINS - 1]);
        assert!((0..TIME_BINS).all(|bin| time_bin(bin_middle_s(bin)) == bin));
        assert!(bin_middle_s(TIME_BINS - 1) > 5.0 * 3_600.0);
    }

    #[test]
    fn whole_numbers_find_the_same_bins() {
        for bin in 0..TIME_BINS {
            assert_eq!(time_bin_nanos((bin_middle_s(bin) * 1e9) as u64), bin);
        }
        assert_eq!([0, 99_999, 100_000, u64::MAX].map(time_bin_nanos), [0, 0, 0, TIME_BINS - 1]);
    }

    #[test]
    fn stretch_is_one_below_the_knee_and_proportional_above() {
        let origin = Origin { servers: 8.0, log_servers: libm::log(8.0), contention: 0.0, log_prior: 0.0 };
        let f = |n: f64| libm::exp(origin.log_f(n, libm::log(n)));
        assert!(
            (f(4.0) - 1.0).abs() < 1e-3 && (f(8.0) - 1.0905).abs() < 1e-3 && (f(32.0) - 4.0).abs() < 1e-3
        );
        assert!(origins().len() > 200 && origins().len() < 220, "{}", origins().len());
    }
}
