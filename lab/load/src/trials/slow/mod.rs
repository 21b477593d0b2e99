//! Real origins whose requests differ (`make bench-slow`): long polls, exports, streams, pauses and slow
//! upstream services beside pages, behind nothing, Flashweir, the best static limit that a search finds, and
//! another limit that is learned.
//!
//! 1. [`Origin::kinds`] says what is offered in each [`Phase`]; a [`SlowRun`] has a [`PhaseResult`] for each.
//! 2. A [`Report`] holds the rows of several invocations, each of which replaces its own.
//! 3. [`Report::page`] is `docs/slow-origins.md`; `judgement` has the bars.

mod judgement;
mod page;
mod scene;

pub use judgement::{BAR, EARLY_PER_REFUSED};
pub use scene::{CALM_S, CROWD_S, Kind, Loss, Offered, Origin, Phase, Speaks};

use crate::trials::origins::{Belief, FoundLimit, Protection, Share};
use crate::trials::percentile::admitted_ms;
use crate::{Second, Tally};
use serde::{Deserialize, Serialize};

/// Beginning of the calm in which a request of a thousand may be refused, seconds.
pub const EARLY_S: u64 = 10;

/// Outcomes of the requests of one kind that began in one phase.
/// `offered = completed + refused + late + failed`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindResult {
    /// Name of the kind.
    pub kind: String,
    /// Requests that began.
    pub offered: u64,
    /// Answered in time; of streams, open until the run ended.
    pub completed: u64,
    /// Refused.
    pub refused: u64,
    /// Not answered before the client left; of streams, opened later than that.
    pub late: u64,
    /// Broke.
    pub failed: u64,
    /// Median time of those that were not refused, milliseconds; of streams, until the response's head.
    pub p50_ms: Option<f64>,
    /// 99th percentile of the same.
    pub p99_ms: Option<f64>,
}

impl KindResult {
    /// Of the seconds from `from` until before `to`; a client that left counts with the time allowed.
    #[must_use]
    pub fn of(kind: &Kind, tally: &Tally, from: u64, to: u64) -> Self {
        let judged: Vec<&Second> =
            tally.series.iter().filter(|second| (from..to).contains(&second.second)).collect();
        let sum = |of: fn(&Second) -> u64| judged.iter().map(|second| of(second)).sum::<u64>();
        let admitted = |share| admitted_ms(judged.iter().copied(), share, kind.allowed_s());
        Self {
            kind: kind.name.to_owned(),
            offered: sum(|second| second.offered),
            completed: sum(|second| second.goodput),
            refused: sum(|second| second.refused),
            late: sum(|second| second.completed - second.goodput + second.timed_out + second.abandoned),
            failed: sum(|second| second.errors),
            p50_ms: admitted(0.5),
            p99_ms: admitted(0.99),
        }
    }

    /// Of the streams that were opened in the seconds from `from` until before `to`.
    #[must_use]
    pub fn of_streams(kind: &Kind, streams: &[StreamRecord], from: u64, to: u64) -> Self {
        let judged: Vec<&StreamRecord> =
            streams.iter().filter(|stream| (from as f64..to as f64).contains(&stream.opened_s)).collect();
        let count = |end| judged.iter().filter(|stream| stream.end == end).count() as u64;
        let admitted = judged.iter().filter(|stream| stream.end != StreamEnd::Refused);
        let mut heads_ms: Vec<f64> = admitted.map(|stream| stream.head_after_s * 1e3).collect();
        heads_ms.sort_by(f64::total_cmp);
        let quantile = |share: f64| heads_ms.get((heads_ms.len() as f64 * share) as usize).copied();
        Self {
            kind: kind.name.to_owned(),
            offered: judged.len() as u64,
            completed: count(StreamEnd::Open),
            refused: count(StreamEnd::Refused),
            late: count(StreamEnd::Late),
            failed: count(StreamEnd::Broken),
            p50_ms: quantile(0.5),
            p99_ms: quantile(0.99),
        }
    }
}

/// One stream that a client opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamRecord {
    /// Time of opening, seconds after the start of the run.
    pub opened_s: f64,
    /// From then until the head of the response, or until the client left, seconds.
    pub head_after_s: f64,
    /// End of the stream.
    pub end: StreamEnd,
}

/// End of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// Open when the run ended.
    Open,
    /// Refused (503 or 429).
    Refused,
    /// No head within the time allowed.
    Late,
    /// Another response, or closed before the run ended.
    Broken,
}

/// Requests of all kinds at the beginning of the calm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Early {
    /// Requests that began.
    pub offered: u64,
    /// Refused.
    pub refused: u64,
}

/// Results of one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// The phase.
    pub phase: Phase,
    /// Of the core's time, from the third second on; absent of an origin that only waits.
    pub share: Option<Share>,
    /// Each kind of request.
    pub kinds: Vec<KindResult>,
    /// The first ten seconds, in calm only.
    pub early: Option<Early>,
    /// The gateway's estimates; absent with other protections.
    pub belief: Option<Belief>,
}

impl PhaseResult {
    /// Sum over the kinds.
    #[must_use]
    pub fn sum(&self, of: impl Fn(&KindResult) -> u64) -> u64 {
        self.kinds.iter().map(of).sum()
    }

    /// Useful share of the core's time; of an origin that only waits, the share of requests that were
    /// answered in time. The second is 1 without requests.
    #[must_use]
    pub fn worth(&self) -> f64 {
        let served = || match self.sum(|kind| kind.offered) {
            0 => 1.0,
            offered => self.sum(|kind| kind.completed) as f64 / offered as f64,
        };
        self.share.map_or_else(served, Share::useful)
    }
}

/// Run of a slow origin: all phases behind one protection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowRun {
    /// Protection in front of the origin.
    pub protection: Protection,
    /// Each phase, in their order.
    pub phases: Vec<PhaseResult>,
    /// The load generator did not keep up.
    pub is_spoilt: bool,
}

impl SlowRun {
    /// Results of a phase; `None` if the origin has no such phase.
    #[must_use]
    pub fn phase(&self, phase: Phase) -> Option<&PhaseResult> {
        self.phases.iter().find(|result| result.phase == phase)
    }
}

/// An origin with all its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The origin.
    pub origin: Origin,
    /// Lengths of the phases, seconds.
    pub lengths_s: Vec<(Phase, u64)>,
    /// Rounds that were asked for.
    pub rounds: usize,
    /// Pages that the origin completed in a closed loop before each round, a second.
    pub capacity_rps: Vec<f64>,
    /// The static limit.
    pub found: Option<FoundLimit>,
    /// Every run.
    pub runs: Vec<SlowRun>,
    /// Reasons for which the whole row or one protection was not measured.
    pub missing: Vec<String>,
}

impl Row {
    /// Of that phase of all runs behind one protection.
    fn values(&self, protection: Protection, phase: Phase, of: impl Fn(&PhaseResult) -> f64) -> Vec<f64> {
        let runs = self.runs.iter().filter(|run| run.protection == protection);
        runs.filter_map(|run| run.phase(phase)).map(of).collect()
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
    /// By origin.
    pub rows: Vec<Row>,
}

impl Report {
    /// Puts a row in its place, instead of the one that was measured before.
    pub fn put(&mut self, row: Row) {
        self.rows.retain(|old| old.origin != row.origin);
        self.rows.push(row);
        self.rows.sort_by_key(|row| Origin::ALL.iter().position(|origin| *origin == row.origin));
    }

    /// The row of an origin.
    #[must_use]
    pub fn row(&self, origin: Origin) -> Option<&Row> {
        self.rows.iter().find(|row| row.origin == origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_belong_to_the_phase_in_which_they_begin_and_add_up() {
        let second = |second, completed, goodput, refused, timed_out, errors| Second {
            second,
            offered: completed + refused + timed_out + errors,
            completed,
            goodput,
            refused,
            timed_out,
            errors,
            ..Second::default()
        };
        let series = vec![second(4, 9, 9, 9, 9, 9), second(5, 10, 9, 3, 2, 1), second(6, 8, 8, 8, 8, 8)];
        let tally = Tally { series, ..Tally::default() };
        let kind = &Origin::Pauses.kinds()[0];
        let result = KindResult::of(kind, &tally, 5, 6);
        assert_eq!((result.offered, result.completed, result.refused), (16, 9, 3));
        assert_eq!((result.late, result.failed), (3, 1));
        let sum = result.completed + result.refused + result.late + result.failed;
        assert_eq!(sum, result.offered);
        assert!(result.p99_ms.unwrap() > 950.0, "clients that left count with the time allowed");
    }

    #[test]
    fn streams_add_up_too() {
        let stream = |opened_s, head_after_s, end| StreamRecord { opened_s, head_after_s, end };
        let streams = [
            stream(4.9, 0.1, StreamEnd::Open),
            stream(5.0, 0.2, StreamEnd::Open),
            stream(6.0, 0.001, StreamEnd::Refused),
            stream(7.0, 0.3, StreamEnd::Broken),
            stream(8.0, 1.0, StreamEnd::Late),
            stream(9.0, 0.1, StreamEnd::Open),
        ];
        let result = KindResult::of_streams(&Origin::Streams.kinds()[1], &streams, 5, 9);
        assert_eq!((result.offered, result.completed, result.refused), (4, 1, 1));
        assert_eq!((result.late, result.failed), (1, 1));
        assert_eq!((result.p50_ms, result.p99_ms), (Some(300.0), Some(1_000.0)));
    }

    #[test]
    fn an_origin_that_only_waits_is_judged_by_its_answers() {
        let kind = KindResult { offered: 200, completed: 150, refused: 50, ..KindResult::default() };
        let phase = |share| PhaseResult {
            phase: Phase::Crowd,
            share,
            kinds: vec![kind.clone()],
            early: None,
            belief: None,
        };
        assert_eq!(phase(None).worth(), 0.75);
        assert_eq!(phase(Some(Share { busy: 0.5, in_time: 0.5 })).worth(), 0.25);
        assert_eq!(PhaseResult { kinds: Vec::new(), ..phase(None) }.worth(), 1.0);
    }
}
