//! The grid of origins, and how much longer than alone a request takes at each number in flight.

use alloc::boxed::Box;

/// The number of servers c in quarter octaves, from 1 to 8,192.
pub(super) const SERVERS: usize = 53;
/// By how much each request in flight beyond the first slows all others (κ), and how likely that is before
/// anything is measured.
const CONTENTIONS: [(f64, f64); 6] =
    [(0.0, 0.6), (0.002, 0.1), (0.005, 0.1), (0.01, 0.08), (0.02, 0.07), (0.05, 0.05)];
/// Servers times κ, at most.
const SERVERS_CONTENDED: f64 = 2.0;
/// Origins in the grid.
pub(super) const ORIGINS: usize = SERVERS * CONTENTIONS.len();

/// One number for each origin.
pub(super) type PerOrigin = Box<[f64; ORIGINS]>;

/// Zero for each.
pub(super) fn zeros() -> PerOrigin {
    Box::new([0.0; ORIGINS])
}

/// Position of an origin in the grid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    servers: usize,
    contention: usize,
}

impl Origin {
    pub(super) fn new(index: usize) -> Self {
        Self { servers: index / CONTENTIONS.len(), contention: index % CONTENTIONS.len() }
    }

    /// The logarithm of the number of servers.
    pub(super) fn log_servers(self) -> f64 {
        self.servers as f64 * QUARTER_OCTAVE
    }
}

/// Prior probability of each origin, before anything is measured, up to a factor: every number of servers is
/// as likely as any other, if they do more than half as many would: more are as if there were no more.
pub(super) fn priors() -> PerOrigin {
    let mut priors = zeros();
    for (index, prior) in priors.iter_mut().enumerate() {
        let origin = Origin::new(index);
        let (contention, likely) = CONTENTIONS[origin.contention];
        let is_one = libm::exp(origin.log_servers()) * contention <= SERVERS_CONTENDED;
        *prior = if is_one { likely } else { 0.0 };
    }
    priors
}

/// A request's time over its time alone, at one number in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    queueing: [Factor; SERVERS],
    contended: [Factor; CONTENTIONS.len()],
}

/// A factor and its logarithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factor {
    pub(super) value: f64,
    pub(super) log: f64,
}

impl Stretch {
    /// `(1 + (n/c)⁸)^⅛ · (1 + κ (n − 1))` for every c and κ: 1 below the knee, rising like n above it;
    /// rounded a little, since a real origin takes the next request a little later. O(numbers of servers +
    /// contentions).
    pub(super) fn at(in_flight: f64) -> Self {
        let in_flight = in_flight.max(1.0);
        let log = libm::log(in_flight);
        let mut queueing = [Factor::ONE; SERVERS];
        for (index, factor) in queueing.iter_mut().enumerate() {
            *factor = factor_of_queueing(log - index as f64 * QUARTER_OCTAVE);
        }
        let contended = CONTENTIONS.map(|(contention, _)| Factor::new(1.0 + contention * (in_flight - 1.0)));
        Self { queueing, contended }
    }

    /// For one origin. O(1).
    pub(super) fn of(&self, origin: Origin) -> Factor {
        let (one, other) = (self.queueing[origin.servers], self.contended[origin.contention]);
        Factor { value: one.value * other.value, log: one.log + other.log }
    }
}

impl Factor {
    const ONE: Self = Self { value: 1.0, log: 0.0 };

    fn new(value: f64) -> Self {
        Self { value, log: libm::log(value) }
    }
}

/// `(1 + rᵖ)^(1/p)` for r requests a server, p being [`SHARPNESS`], ln r given.
fn factor_of_queueing(log: f64) -> Factor {
    if log < -FAR {
        return Factor::ONE;
    }
    let log = if log > FAR { log } else { libm::log1p(libm::exp(SHARPNESS * log)) / SHARPNESS };
    Factor { value: libm::exp(log), log }
}

/// Sharpness of the knee: the exponent of the sum of both ways to be slow.
const SHARPNESS: f64 = 8.0;
const QUARTER_OCTAVE: f64 = core::f64::consts::LN_2 / 4.0;
/// So far from the knee (logarithm) nothing is rounded: by less than a part in three thousand.
const FAR: f64 = 8.0 / SHARPNESS;
