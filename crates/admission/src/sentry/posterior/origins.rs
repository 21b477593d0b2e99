//! The grid of origins, and the throughput of each.

use alloc::boxed::Box;

/// The number of servers in steps of a quarter of an octave, from 1 to 8,192.
const SERVERS: usize = 53;
/// By how much each request in flight beyond the first slows all of them, and how likely that is of an origin of which
/// nothing is known: most share their processors fairly.
const CONTENTIONS: [(f64, f64); 6] =
    [(0.0, 0.6), (0.002, 0.1), (0.005, 0.1), (0.01, 0.08), (0.02, 0.07), (0.05, 0.05)];
/// How many they are.
pub(super) const ORIGINS: usize = SERVERS * CONTENTIONS.len();

/// One number for each origin.
pub(super) type PerOrigin = Box<[f64; ORIGINS]>;

/// Zero for each.
pub(super) fn zeros() -> PerOrigin {
    Box::new([0.0; ORIGINS])
}

/// How many servers an origin has.
pub(super) fn servers(origin: usize) -> f64 {
    libm::exp2((origin / CONTENTIONS.len()) as f64 / 4.0)
}

/// The logarithm of how likely an origin is before anything is seen: any number of servers, up to a factor, as likely
/// as any other.
pub(super) fn log_prior(origin: usize) -> f64 {
    libm::log(CONTENTIONS[origin % CONTENTIONS.len()].1)
}

/// The logarithm of each origin's throughput at a number in flight, over its throughput with one.
///
/// `n / (1 + (n/c)⁸)^⅛ / (1 + κ (n − 1))`: a knee as sharp as that of servers that take the next request at once, rounded a
/// little, because a real origin takes it a little later. O([`ORIGINS`]), about 4 µs.
pub(super) fn log_speedups(in_flight: f64) -> PerOrigin {
    let mut logs = zeros();
    let log_in_flight = libm::log(in_flight);
    let slowed = CONTENTIONS.map(|(contention, _)| libm::log1p(contention * (in_flight - 1.0).max(0.0)));
    for of_servers in logs.chunks_exact_mut(CONTENTIONS.len()).enumerate() {
        let (index, logs) = of_servers;
        let over = in_flight / servers(index * CONTENTIONS.len());
        let squared = over * over;
        let to_the_eighth = squared * squared * squared * squared;
        let free = log_in_flight - libm::log1p(to_the_eighth) / 8.0;
        logs.iter_mut().zip(slowed).for_each(|(log, slowed)| *log = free - slowed);
    }
    logs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speedup(servers_index: usize, contention_index: usize, in_flight: f64) -> f64 {
        libm::exp(log_speedups(in_flight)[servers_index * CONTENTIONS.len() + contention_index])
    }

    #[test]
    fn below_the_knee_more_do_more_and_above_it_no_more() {
        // Eight of a quarter octave are four servers.
        assert!((speedup(8, 0, 1.0) - 1.0).abs() < 1e-3 && (speedup(8, 0, 2.0) - 2.0).abs() < 1e-2);
        assert!((3.9..=4.0).contains(&speedup(8, 0, 6.0)) && (3.99..=4.0).contains(&speedup(8, 0, 400.0)));
    }

    #[test]
    fn with_contention_more_in_flight_do_less_in_the_end() {
        let with = |in_flight| speedup(8, 4, in_flight);
        assert!(with(4.0) > with(2.0) && with(100.0) < 0.5 * with(5.0), "{} {}", with(4.0), with(100.0));
    }
}
