//! Scale of our testbed against that of NEWS (§8).
//!
//! A run of the paper's takes 2,000 s. Rates are multiplied and times divided, so that an interval holds as
//! many flows as a third of the paper's and a figure takes minutes. Linux's own times cannot be scaled: SYNs
//! are sent again after 1, 3 and 7 s, where Linux of 2003 took 3, 9, 21 and 45. So people wait for 8 s, three
//! repeated SYNs, and not for a sixteenth of a minute.

use std::time::Duration;

/// Our requests a second for one of the paper's; the links' rates as well.
pub const RATES: f64 = 5.0;
/// The paper's seconds for one of ours.
pub const TIMES: f64 = 16.0;
/// The paper's 64 s.
pub const INTERVAL_S: u64 = 4;
/// Before the crowd: eight intervals, half of the paper's.
pub const QUIET_S: u64 = 32;
/// With the crowd: twelve intervals, three quarters of the paper's.
pub const CROWD_S: u64 = 48;
/// People give up; see above.
pub const PATIENCE: Duration = Duration::from_secs(8);
/// An answer within this time is goodput: one repeated SYN is forgiven, two are not.
pub const GOOD_WITHIN: Duration = Duration::from_secs(2);

/// Of §8.2 and Table II, requests a second.
pub(super) const QUIET_PER_S: f64 = 40.0;
pub(super) const CROWD_PER_S: f64 = 117.0;
/// §8.1, bits a second.
pub(super) const BITS_PER_S: f64 = 2e6;

/// In the paper's requests a second.
pub(super) fn paper_rate(ours_per_s: f64) -> f64 {
    ours_per_s / RATES
}

/// Notes of every finding at this scale.
pub(super) fn notes() -> Vec<String> {
    vec![
        format!(
            "Scale: {RATES} of our requests (and bits) a second stand for one of the paper's, {TIMES} of its seconds pass in one of \
             ours: the bottleneck has {:.0} Mb/s, T = 64 s is {INTERVAL_S} s, quiet and crowd take {QUIET_S} s and {CROWD_S} s. Rates \
             are told in the paper's requests a second, times in ours.",
            BITS_PER_S * RATES / 1e6
        ),
        format!(
            "Real Linux TCP, nginx and `flashweir load` (a new connection for each request) in network namespaces of one machine. \
             TCP's own times are not scaled: a SYN is sent again after 1, 3 and 7 s (3, 9, 21 s in 2003), people wait {} s. Goodput is \
             what is whole within {} s.",
            PATIENCE.as_secs(),
            GOOD_WITHIN.as_secs()
        ),
        "The page sizes (Pareto, shape 1.2, from 800 bytes to 100 kB), the bottleneck's buffer (84 ms) and the distance (40 ms one \
         way) are those chosen for the simulator's testbed or close to them, not the paper's, which gives none. So no value may be \
         claimed as matched, only shapes."
            .to_owned(),
    ]
}
