//! Useful work of the origin behind each composition of the gateway (`make bench-useful`): the cases, and the
//! table.
//!
//! 1. A [`Case`] is a composition, a load and a kind of page; [`Case::all`] lists them in the order of a round.
//! 2. A [`UsefulRun`] is what one of them found, as [`flashweir_core::measure::useful`] defines it.
//! 3. [`text`] is the table: medians and spread over the rounds.

mod table;

use flashweir_core::measure::Useful;

pub use table::text;

/// Stages of the gateway that decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Composition {
    /// NEWS without the sentry.
    NewsAlone,
    /// The sentry without NEWS.
    SentryAlone,
    /// Both, as the gateway is without any configuration.
    Default,
}

impl Composition {
    /// Every composition, in the order of the table's columns.
    pub const ALL: [Self; 3] = [Self::NewsAlone, Self::SentryAlone, Self::Default];

    /// Its name in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewsAlone => "NEWS alone",
            Self::SentryAlone => "sentry alone",
            Self::Default => "default",
        }
    }
}

/// Processor time of a page, milliseconds.
pub const PAGES_MS: [u32; 3] = [1, 5, 50];
/// Offered load over the origin's capacity.
pub const LOADS: [f64; 3] = [1.5, 3.0, 10.0];

/// One cell of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Stages that decide.
    pub composition: Composition,
    /// Offered load over the origin's capacity.
    pub load: f64,
    /// Processor time of each page, milliseconds.
    pub page_ms: u32,
}

impl Case {
    /// All cases with pages of `page_ms`; the compositions take turns, and a round of odd number goes
    /// backwards, so that a change of the machine's speed falls on all.
    #[must_use]
    pub fn all(page_ms: u32, round: usize) -> Vec<Self> {
        let at_load =
            |load| Composition::ALL.into_iter().map(move |composition| Self { composition, load, page_ms });
        let mut cases: Vec<Self> = LOADS.into_iter().flat_map(at_load).collect();
        if round % 2 == 1 {
            cases.reverse();
        }
        cases
    }
}

/// Result of one run of a case: the use of the origin's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsefulRun {
    /// The case.
    pub case: Case,
    /// In which round, from 0.
    pub round: usize,
    /// Use of the origin's time.
    pub useful: Useful,
    /// The load generator could not keep up, so the load was less than it should have been.
    pub is_saturated: bool,
}
