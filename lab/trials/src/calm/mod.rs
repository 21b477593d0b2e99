//! Services in calm: nothing is short, and nothing may be refused (`make bench-calm`).
//!
//! 1. A [`Case`] is a mixture of requests before an origin that only waits, with room for all of them.
//! 2. A [`Row`] is what became of each [`Kind`] of its requests behind the gateway with its defaults.
//! 3. [`page`] is the table.

mod page;

pub use page::page;

/// Length of a case, seconds.
pub const LENGTH_S: u64 = 50;
/// Second in which a rate steps.
pub const STEP_S: u64 = 20;

/// Requests of one URL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// Its name in the table.
    pub name: &'static str,
    /// Its path at `flashweir origin`.
    pub path: &'static str,
    /// Its rate, requests a second.
    pub rps: f64,
    /// Its rate from second [`STEP_S`] on, requests a second.
    pub rps_after_step: f64,
}

impl Kind {
    const fn steady(name: &'static str, path: &'static str, rps: f64) -> Self {
        Self { name, path, rps, rps_after_step: rps }
    }

    const fn stepping(name: &'static str, path: &'static str, rps: f64, rps_after_step: f64) -> Self {
        Self { name, path, rps, rps_after_step }
    }

    /// Pages of 10 ms.
    const fn pages(rps_after_step: f64) -> Self {
        Self::stepping("pages of 10 ms", "/page?wait=10", 30.0, rps_after_step)
    }
}

/// A service in calm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Its name in the table.
    pub name: &'static str,
    /// Requests that each wait 2 s before the origin is warm.
    pub cold_requests: u64,
    /// Its requests.
    pub kinds: &'static [Kind],
}

impl Case {
    const fn of(name: &'static str, kinds: &'static [Kind]) -> Self {
        Self { name, cold_requests: 0, kinds }
    }
}

/// Every case.
pub const CASES: [Case; 12] = [
    Case::of("polls of 20 s", &[Kind::pages(30.0), Kind::steady("polls", "/poll?wait=20000", 2.0)]),
    Case::of("polls, pages step", &[Kind::pages(150.0), Kind::steady("polls", "/poll?wait=20000", 2.0)]),
    Case::of("10 s", &[Kind::pages(30.0), Kind::steady("reports", "/report?wait=10000", 1.0)]),
    Case::of("6 s", &[Kind::pages(30.0), Kind::steady("reports", "/report?wait=6000", 2.0)]),
    Case::of("6 s, pages step", &[Kind::pages(150.0), Kind::steady("reports", "/report?wait=6000", 2.0)]),
    Case::of("exports of 5 s", &[Kind::pages(30.0), Kind::steady("exports", "/export?wait=5000", 0.5)]),
    Case::of("20 s, rare", &[Kind::pages(30.0), Kind::steady("exports", "/export?wait=20000", 0.2)]),
    Case::of("3 s", &[Kind::pages(30.0), Kind::steady("reports", "/report?wait=3000", 2.0)]),
    Case::of("all 800 ms, step", &[Kind::stepping("pages of 800 ms", "/page?wait=800", 20.0, 60.0)]),
    Case::of("all 2 s", &[Kind::steady("pages of 2 s", "/page?wait=2000", 10.0)]),
    Case::of("all 5 s", &[Kind::steady("answers of 5 s", "/answer?wait=5000", 3.0)]),
    Case {
        name: "warm-up",
        cold_requests: 40,
        kinds: &[Kind::steady("pages, the first 40 of 2 s", "/page?wait=10", 40.0)],
    },
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
