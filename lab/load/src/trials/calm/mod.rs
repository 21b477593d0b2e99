//! Services in calm: nothing is short, and nothing may be refused (`make bench-calm`).
//!
//! 1. A [`Case`] is a mixture of requests before an origin that only waits, with room for all of them.
//! 2. A [`Row`] is what became of each [`Kind`] of its requests behind the gateway with its defaults.
//! 3. [`page`] is the table.

mod page;

pub use page::page;

/// Length of a case, seconds.
pub const LENGTH_S: u64 = 50;
/// Requests that wait 2 s each before an origin is warm.
pub const COLD_REQUESTS: u64 = 40;

/// Requests of one URL and time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// Its name in the table.
    pub name: &'static str,
    /// Its path at `flashweir origin`; the query is no part of what the gateway takes for the URL.
    pub path: &'static str,
    /// Seconds from which on requests come at a rate, and the rate a second; the first is 0.
    pub rates: &'static [(u64, f64)],
}

impl Kind {
    const fn of(name: &'static str, path: &'static str, rates: &'static [(u64, f64)]) -> Self {
        Self { name, path, rates }
    }

    /// Pages of 10 ms.
    const fn pages(rates: &'static [(u64, f64)]) -> Self {
        Self::of("pages of 10 ms", "/page?wait=10", rates)
    }
}

/// A service in calm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Its name in the table.
    pub name: &'static str,
    /// Second in which the origin starts, or starts again, and is cold.
    pub cold_at_s: Option<u64>,
    /// Its requests.
    pub kinds: &'static [Kind],
}

impl Case {
    const fn of(name: &'static str, kinds: &'static [Kind]) -> Self {
        Self { name, cold_at_s: None, kinds }
    }
}

const STEADY: &[(u64, f64)] = &[(0, 30.0)];
const STEPPING: &[(u64, f64)] = &[(0, 30.0), (20, 150.0)];
const TWO: &[(u64, f64)] = &[(0, 2.0)];
/// From second 1 to second 2.
const AT_ONCE: &[(u64, f64)] = &[(0, 0.0), (1, 300.0), (2, 0.0)];
const FORTY: &[(u64, f64)] = &[(0, 40.0)];
/// While another service is not slow, and while it is.
const BEFORE_AND_AFTER: &[(u64, f64)] = &[(0, 40.0), (15, 0.0), (35, 40.0)];
const MEANWHILE: &[(u64, f64)] = &[(0, 0.0), (15, 40.0), (35, 0.0)];
const WAITING: [Kind; 2] = [
    Kind::of("pages of 50 ms", "/page?wait=50", BEFORE_AND_AFTER),
    Kind::of("the same, waiting 3 s", "/page?wait=3000", MEANWHILE),
];

/// Every case.
pub const CASES: [Case; 17] = [
    Case::of("polls of 20 s", &[Kind::pages(STEADY), Kind::of("polls", "/poll?wait=20000", TWO)]),
    Case::of("polls, pages step", &[Kind::pages(STEPPING), Kind::of("polls", "/poll?wait=20000", TWO)]),
    Case::of("polls, one URL", &[Kind::pages(STEADY), Kind::of("polls", "/page?wait=20000", TWO)]),
    Case::of(
        "300 polls at once, one URL",
        &[Kind::pages(STEADY), Kind::of("polls, all in second 1", "/page?wait=20000", AT_ONCE)],
    ),
    Case::of("10 s", &[Kind::pages(STEADY), Kind::of("reports", "/report?wait=10000", &[(0, 1.0)])]),
    Case::of("6 s", &[Kind::pages(STEADY), Kind::of("reports", "/report?wait=6000", TWO)]),
    Case::of("6 s, pages step", &[Kind::pages(STEPPING), Kind::of("reports", "/report?wait=6000", TWO)]),
    Case::of("exports of 5 s", &[Kind::pages(STEADY), Kind::of("exports", "/export?wait=5000", &[(0, 0.5)])]),
    Case::of("20 s, rare", &[Kind::pages(STEADY), Kind::of("exports", "/export?wait=20000", &[(0, 0.2)])]),
    Case::of("3 s", &[Kind::pages(STEADY), Kind::of("reports", "/report?wait=3000", TWO)]),
    Case::of("all 800 ms, step", &[Kind::of("pages of 800 ms", "/page?wait=800", &[(0, 20.0), (20, 60.0)])]),
    Case::of("all 2 s", &[Kind::of("pages of 2 s", "/page?wait=2000", &[(0, 10.0)])]),
    Case::of("all 5 s", &[Kind::of("answers of 5 s", "/answer?wait=5000", &[(0, 3.0)])]),
    Case {
        name: "warm-up",
        cold_at_s: Some(0),
        kinds: &[Kind::of("pages, the first 40 of 2 s", "/page?wait=10", FORTY)],
    },
    Case {
        name: "restart",
        cold_at_s: Some(15),
        kinds: &[Kind::of("pages of 10 ms, 40 of 2 s from second 15 on", "/page?wait=10", FORTY)],
    },
    Case::of(
        "one slow URL of two",
        &[Kind::of("other pages of 50 ms", "/other?wait=50", FORTY), WAITING[0], WAITING[1]],
    ),
    Case::of("all slow for 20 s", &WAITING),
];

/// Outcomes of the requests of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct KindResult {
    /// Its name in the table.
    pub name: &'static str,
    /// Requests offered.
    pub offered: u64,
    /// Of them refused.
    pub refused: u64,
    /// Of them refused in the first ten seconds.
    pub refused_early: u64,
    /// Of them without an answer: timed out, or failed.
    pub lost: u64,
    /// Median time of the completed, milliseconds.
    pub p50_ms: Option<f64>,
    /// 99th percentile of the completed, milliseconds.
    pub p99_ms: Option<f64>,
}

/// Result of one case.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The case's name.
    pub name: &'static str,
    /// Its kinds of requests.
    pub kinds: Vec<KindResult>,
    /// Cause in the gateway's verdict, five seconds before the end.
    pub cause: String,
    /// The load generator was late, or the gateway's status could not be read.
    pub is_spoilt: bool,
}
