//! Real origins behind a crowd (`make bench-origins`): application servers, a database and a link, each
//! behind nothing, Flashweir, the best static limit that a search finds, and another limit that is learned.
//!
//! 1. A [`Row`] is an origin and an overload; an [`OriginRun`] is what became of one crowd: a [`Share`] of
//!    the first seconds, and one of the rest.
//! 2. A [`Report`] holds the rows of several invocations, each of which replaces its own.
//! 3. [`Report::page`] is `docs/origins.md`.

mod page;

use crate::trials::percentile::admitted_ms;
use crate::{LoadResult, Second};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Useful share that Flashweir must reach.
pub const BAR: f64 = 0.97;
/// An answer within this time is useful, and clients leave after it: the target of a class that names none.
pub const TARGET: Duration = Duration::from_secs(1);
/// Load before the crowd, over the origin's capacity.
pub const CALM_LOAD: f64 = 0.5;
/// The beginning of the crowd, which is judged separately.
pub const FIRST: Duration = Duration::from_secs(3);

/// Origin behind the protections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// PHP-FPM behind nginx.
    Php,
    /// Python behind Gunicorn.
    Wsgi,
    /// Node, whose programs run on one thread.
    Node,
    /// A database with a small application before it.
    Postgres,
    /// Files over a narrow link.
    Static,
}

impl Origin {
    /// Every origin, in the order of the table.
    pub const ALL: [Self; 5] = [Self::Php, Self::Wsgi, Self::Node, Self::Postgres, Self::Static];

    /// The word that `ONLY` takes.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Php => "php",
            Self::Wsgi => "wsgi",
            Self::Node => "node",
            Self::Postgres => "postgres",
            Self::Static => "static",
        }
    }

    /// Its name in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Php => "PHP-FPM, 8 workers",
            Self::Wsgi => "Python WSGI, 4 processes",
            Self::Node => "Node, one thread",
            Self::Postgres => "PostgreSQL, pool of 10",
            Self::Static => "nginx, files over a shaped link",
        }
    }
}

/// Protection in front of the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protection {
    /// The crowd goes straight to the origin.
    Nothing,
    /// The gateway, to which only the origin's address was given.
    Flashweir,
    /// The best static limit that the search found.
    Haproxy,
    /// The filter `adaptive_concurrency`.
    Envoy,
}

impl Protection {
    /// Every protection, in the order of the table.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::Flashweir, Self::Haproxy, Self::Envoy];

    /// Its name in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Flashweir => "Flashweir",
            Self::Haproxy => "HAProxy, best `maxconn`",
            Self::Envoy => "Envoy adaptive concurrency",
        }
    }
}

/// Use of an origin's time, or of a link's rate, in a stretch of the crowd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Share of the time in which the origin had work, or of the link's rate that was used.
    pub busy: f64,
    /// Share of that which went into answers in time.
    pub in_time: f64,
}

impl Share {
    /// Share of the time, or of the link's rate, that went into answers in time.
    #[must_use]
    pub fn useful(self) -> f64 {
        self.busy * self.in_time
    }
}

/// Run of one crowd on an origin, behind one protection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OriginRun {
    /// Protection in front of the origin.
    pub protection: Protection,
    /// The first three seconds of the crowd.
    pub first: Share,
    /// The crowd from its third second on.
    pub settled: Share,
    /// Part of the busy share of the settled stretch that the scheduler's account of the origin does not
    /// show: interrupts, and anything else that ran on its core. Absent where no core is the bottleneck.
    pub taken: Option<f64>,
    /// Outcomes of the requests of the settled stretch.
    pub counts: Counts,
    /// Requests refused before the crowd.
    pub refused_in_calm: u64,
    /// The gateway's estimates in the settled stretch; absent with other protections.
    pub belief: Option<Belief>,
    /// The load generator did not keep up, or the machine lost packets of the link.
    pub is_spoilt: bool,
}

/// Shares of the requests of a stretch, and how long those took that were not refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Refused.
    pub refused: f64,
    /// Not answered before the client left.
    pub left: f64,
    /// Broke.
    pub failed: f64,
    /// 99th percentile of those that were not refused, milliseconds; a client that left counts with its
    /// patience.
    pub p99_admitted_ms: Option<f64>,
}

impl Counts {
    /// Of the seconds from `from` until before `to`.
    #[must_use]
    pub fn of(load: &LoadResult, from: u64, to: u64) -> Self {
        let judged: Vec<&Second> =
            load.totals.series.iter().filter(|second| (from..to).contains(&second.second)).collect();
        let sum = |of: fn(&Second) -> u64| judged.iter().map(|second| of(second)).sum::<u64>() as f64;
        let offered = sum(|second| second.offered).max(1.0);
        Self {
            refused: sum(|second| second.refused) / offered,
            left: sum(|second| second.timed_out + second.abandoned) / offered,
            failed: sum(|second| second.errors) / offered,
            p99_admitted_ms: admitted_ms(judged, 0.99, TARGET.as_secs_f64()),
        }
    }
}

/// One look at the plan of the gateway's sentry.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Requests at the origin at most.
    pub limit: f64,
    /// Requests at the origin beyond which more do not serve more.
    pub knee: f64,
    /// Estimated capacity of the origin, requests a second.
    pub capacity_rps: f64,
    /// 95th percentile of the time at the origin, seconds.
    pub response_p95_s: f64,
    /// Requests at the origin.
    pub in_flight: f64,
    /// Requests that wait in the gateway.
    pub waiting: f64,
    /// The rule that made the limit.
    pub rule: String,
}

/// Many looks at the plan: the least, the median and the most of each number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Belief {
    /// Of [`Plan::limit`].
    pub limit: [f64; 3],
    /// Of [`Plan::knee`].
    pub knee: [f64; 3],
    /// Of [`Plan::capacity_rps`].
    pub capacity_rps: [f64; 3],
    /// Of [`Plan::response_p95_s`].
    pub response_p95_s: [f64; 3],
    /// Of [`Plan::in_flight`].
    pub in_flight: [f64; 3],
    /// Of [`Plan::waiting`].
    pub waiting: [f64; 3],
    /// The rules, each with its share of the looks, the most frequent first.
    pub rules: Vec<(String, f64)>,
}

impl Belief {
    /// `None` without any look.
    #[must_use]
    pub fn of(plans: &[Plan]) -> Option<Self> {
        let spread = |of: fn(&Plan) -> f64| {
            let mut values: Vec<f64> = plans.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            Some([*values.first()?, values[values.len() / 2], *values.last()?])
        };
        let mut rules: Vec<(String, f64)> = Vec::new();
        for plan in plans {
            let look = 1.0 / plans.len() as f64;
            match rules.iter_mut().find(|(rule, _)| *rule == plan.rule) {
                Some((_, share)) => *share += look,
                None => rules.push((plan.rule.clone(), look)),
            }
        }
        rules.sort_by(|one, other| other.1.total_cmp(&one.1));
        Some(Self {
            limit: spread(|plan| plan.limit)?,
            knee: spread(|plan| plan.knee)?,
            capacity_rps: spread(|plan| plan.capacity_rps)?,
            response_p95_s: spread(|plan| plan.response_p95_s)?,
            in_flight: spread(|plan| plan.in_flight)?,
            waiting: spread(|plan| plan.waiting)?,
            rules,
        })
    }
}

/// Static limit that a search found, with its trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundLimit {
    /// Requests in flight at the origin.
    pub maxconn: u32,
    /// Queue timeout for that, milliseconds.
    pub queue_timeout_ms: u32,
    /// The settings that were tried and the useful share of each, best first.
    pub trials: Vec<(String, f64)>,
    /// The best is still at an edge of what was tried.
    pub is_at_edge: bool,
}

/// An origin and an overload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The origin.
    pub origin: Origin,
    /// Load of the crowd over the origin's capacity.
    pub overload: f64,
    /// Lengths of the calm and of the crowd, seconds.
    pub lengths_s: [u64; 2],
    /// Rounds that were asked for.
    pub rounds: usize,
    /// Requests a second that the origin completed before each round.
    pub capacity_rps: Vec<f64>,
    /// The static limit.
    pub found: Option<FoundLimit>,
    /// Every crowd.
    pub runs: Vec<OriginRun>,
    /// Reasons for which the whole row or one protection was not measured.
    pub missing: Vec<String>,
}

impl Row {
    /// Of all runs behind one protection.
    fn values(&self, protection: Protection, of: impl Fn(&OriginRun) -> f64) -> Vec<f64> {
        self.runs.iter().filter(|run| run.protection == protection).map(of).collect()
    }
}

/// All rows that were measured on one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Processor, cores and system.
    pub machine: String,
    /// Core of each process.
    pub placement: String,
    /// Programs of the origins, in the versions that ran.
    pub programs: Vec<String>,
    /// By origin, then by overload.
    pub rows: Vec<Row>,
}

impl Report {
    /// Puts a row in its place, instead of the one that was measured before.
    pub fn put(&mut self, row: Row) {
        self.rows.retain(|old| old.origin != row.origin || old.overload != row.overload);
        self.rows.push(row);
        self.rows.sort_by(|one, other| {
            let number = |row: &Row| Origin::ALL.iter().position(|origin| *origin == row.origin);
            number(one).cmp(&number(other)).then(one.overload.total_cmp(&other.overload))
        });
    }

    /// Static limit that a search found for this origin before, at any overload.
    #[must_use]
    pub fn found(&self, origin: Origin) -> Option<&FoundLimit> {
        self.rows.iter().filter(|row| row.origin == origin).find_map(|row| row.found.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(origin: Origin, overload: f64) -> Row {
        let (lengths_s, rounds, capacity_rps) = ([5, 15], 1, vec![30.0]);
        let (found, runs, missing) = (None, Vec::new(), Vec::new());
        Row { origin, overload, lengths_s, rounds, capacity_rps, found, runs, missing }
    }

    #[test]
    fn a_row_replaces_the_one_measured_before_and_rows_keep_their_order() {
        let mut report = Report::default();
        for (origin, overload) in [(Origin::Node, 10.0), (Origin::Php, 3.0), (Origin::Node, 3.0)] {
            report.put(row(origin, overload));
        }
        let again = Row { rounds: 2, ..row(Origin::Node, 10.0) };
        report.put(again.clone());
        let order: Vec<_> = report.rows.iter().map(|row| (row.origin, row.overload)).collect();
        assert_eq!(order, [(Origin::Php, 3.0), (Origin::Node, 3.0), (Origin::Node, 10.0)]);
        assert_eq!(report.rows[2], again);
    }

    #[test]
    fn a_belief_is_made_of_all_looks() {
        let plan = |limit, rule: &str| Plan {
            limit,
            knee: limit / 2.0,
            capacity_rps: 30.0,
            response_p95_s: 0.1,
            in_flight: 1.0,
            waiting: 0.0,
            rule: rule.to_owned(),
        };
        let plans = [plan(4.0, "knee"), plan(8.0, "target"), plan(2.0, "target"), plan(6.0, "target")];
        let belief = Belief::of(&plans).unwrap();
        assert_eq!((belief.limit, belief.knee), ([2.0, 6.0, 8.0], [1.0, 3.0, 4.0]));
        assert_eq!(belief.rules, [("target".to_owned(), 0.75), ("knee".to_owned(), 0.25)]);
        assert_eq!(Belief::of(&[]), None);
    }

    #[test]
    fn only_the_judged_seconds_are_counted() {
        let second = |second, offered, refused, timed_out| Second {
            second,
            offered,
            refused,
            timed_out,
            ..Second::default()
        };
        let mut load = LoadResult::default();
        load.totals.series =
            vec![second(7, 50, 50, 0), second(8, 60, 30, 3), second(9, 40, 10, 2), second(10, 9, 9, 0)];
        let counts = Counts::of(&load, 8, 10);
        assert_eq!((counts.refused, counts.left, counts.failed), (0.4, 0.05, 0.0));
        assert!(counts.p99_admitted_ms.unwrap() > 950.0, "clients that left count with their patience");
    }
}
