//! The grid of origins, and how much longer than alone a request takes at each number in flight.

use alloc::boxed::Box;

/// The number of servers c in quarter octaves, from 1 to 8,192.
const SERVERS: usize = 53;
/// By how much each request in flight beyond the first slows all others (κ), and how likely that is before anything is measured.
const CONTENTIONS: [(f64, f64); 6] =
    [(0.0, 0.6), (0.002, 0.1), (0.005, 0.1), (0.01, 0.08), (0.02, 0.07), (0.05, 0.05)];
/// Servers times κ, at most.
const SERVERS_CONTENDED: f64 = 2.0;
/// The logarithm of a probability that is none.
const UNLIKELY: f64 = -100.0;
/// Origins in the grid.
pub(super) const ORIGINS: usize = SERVERS * CONTENTIONS.len();

/// One number for each origin.
pub(super) type PerOrigin = Box<[f64; ORIGINS]>;

/// Zero for each.
pub(super) fn zeros() -> PerOrigin {
    Box::new([0.0; ORIGINS])
}

/// The number of servers of an origin.
pub(super) fn servers(origin: usize) -> f64 {
    libm::exp2((origin / CONTENTIONS.len()) as f64 / 4.0)
}

/// The logarithm of how likely an origin is before anything is measured: every number of servers, up to a factor, is as
/// likely as any other, if they do more than half as many would: more are as if there were no more.
pub(super) fn log_prior(origin: usize) -> f64 {
    let (contention, prior) = CONTENTIONS[origin % CONTENTIONS.len()];
    if servers(origin) * contention > SERVERS_CONTENDED { UNLIKELY } else { libm::log(prior) }
}

/// The logarithm of a request's time over its time alone, at one number in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// The number in flight in quarter octaves.
    quarter: f64,
    contended: [f64; CONTENTIONS.len()],
}

impl Stretch {
    pub(super) fn at(in_flight: f64) -> Self {
        let in_flight = in_flight.max(1.0);
        Self {
            quarter: 4.0 * libm::log2(in_flight),
            contended: CONTENTIONS.map(|(contention, _)| libm::log1p(contention * (in_flight - 1.0))),
        }
    }

    /// `ln((1 + (n/c)⁸)^⅛ · (1 + κ (n − 1)))`: 0 below the knee, rising like n above it; rounded a little, since a real origin
    /// takes the next request a little later. O(1).
    pub(super) fn log(&self, origin: usize) -> f64 {
        queueing(self.quarter - (origin / CONTENTIONS.len()) as f64)
            + self.contended[origin % CONTENTIONS.len()]
    }
}

/// `ln (1 + r⁸)^⅛` for r = 2^(quarter/4).
fn queueing(quarter: f64) -> f64 {
    if quarter < -6.0 {
        0.0
    } else if quarter > 6.0 {
        quarter * (core::f64::consts::LN_2 / 4.0)
    } else {
        libm::log1p(libm::exp2(2.0 * quarter)) / 8.0
    }
}
