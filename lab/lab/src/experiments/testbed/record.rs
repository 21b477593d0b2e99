//! Measurements of a run.

use std::collections::BTreeMap;
use std::ops::Range;

/// Measurements of a run, by instruments that have no part in the protection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Each second from the first arrival on.
    pub seconds: Vec<Second>,
    /// The fastest tenth of the responses, reading by reading.
    pub fastest: Vec<Fastest>,
    /// Decisions of the protection, each change.
    pub decisions: Vec<Decision>,
    /// People by what they are: `crowd`, a second client of its server, and those beside it, before, while
    /// the crowd is found, and after.
    pub people: BTreeMap<String, People>,
    /// Cost of the router, where there was one.
    pub router: Option<RouterCost>,
    /// Reasons why this run says little: parts of the machine that were too slow.
    pub doubts: Vec<String>,
}

/// Events of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// SYNs that the crowd's clients sent, repeated ones included.
    pub offered: u64,
    /// Connections that they opened.
    pub unique_offered: u64,
    /// Connections that the server got, those beside the crowd included where they are the same server's.
    pub admitted: u64,
    /// Frames that the bottleneck let through.
    pub sent: u64,
    /// Frames that it dropped.
    pub dropped: u64,
    /// Answers of tries of the crowd that were to begin in this second.
    pub completed: u64,
    /// Of these, in time.
    pub good: u64,
    /// Of the same tries, given up.
    pub timed_out: u64,
    /// Connections open at the server.
    pub waiting: u64,
    /// Bytes that came by the download beside the crowd.
    pub download_bytes: u64,
    /// Bytes that the server had to read from its disk, where it is short of memory.
    pub disk_bytes: u64,
    /// Median latency of the crowd's answered tries.
    pub latency_s: Option<f64>,
    /// Answered tries of those beside the crowd.
    pub beside_completed: u64,
    /// Their median latency.
    pub beside_latency_s: Option<f64>,
}

/// One reading of the fastest tenth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fastest {
    /// End, seconds.
    pub at_s: f64,
    /// Mean of the fastest tenth, kb/s.
    pub kbps: f64,
    /// Responses with data in the reading.
    pub responses: usize,
}

/// Decision of the protection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Time of the observation, seconds.
    pub at_s: f64,
    /// The limit; none where everything passes.
    pub limit_per_s: Option<f64>,
}

/// Outcome for a group of people.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct People {
    /// Number of people who came.
    pub unique_offered: u64,
    /// Got a whole answer.
    pub completed: u64,
    /// Mean latency of these, seconds.
    pub mean_s: Option<f64>,
    /// Median latency of these, seconds.
    pub median_s: Option<f64>,
}

/// Cost of a router.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RouterCost {
    /// In quiet, and in the crowd.
    pub phases: [PhaseCost; 2],
    /// Memory of its maps in the kernel, bytes, which is all taken when it starts.
    pub maps_bytes: u64,
    /// Of these, for each flow that there is room for.
    pub flow_bytes: f64,
}

/// Cost of a router over a period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PhaseCost {
    /// Processor time of its program over time, percent.
    pub processor_percent: f64,
    /// Memory of its program at the end, bytes.
    pub memory_bytes: u64,
    /// Mean time of a tick, nanoseconds; none without a tick.
    pub tick_ns: Option<f64>,
    /// Mean time of the gate in the kernel for a packet that comes in, nanoseconds; none without a packet.
    pub gate_ns: Option<f64>,
    /// The same of the observer in the kernel, which sees every packet both ways.
    pub observer_ns: Option<f64>,
}

impl Record {
    /// A count over some seconds, each second.
    pub(super) fn per_second(&self, within: Range<u64>, count: impl Fn(&Second) -> u64) -> Option<f64> {
        let seconds = self.within(within);
        (!seconds.is_empty()).then(|| seconds.iter().map(count).sum::<u64>() as f64 / seconds.len() as f64)
    }

    /// One count over another, percent.
    pub(super) fn percent(
        &self,
        within: Range<u64>,
        part: impl Fn(&Second) -> u64,
        whole: impl Fn(&Second) -> u64,
    ) -> Option<f64> {
        let whole = self.per_second(within.clone(), whole)?;
        (whole > 0.0).then(|| self.per_second(within, part).map(|part| part / whole * 100.0)).flatten()
    }

    /// Mean of the fastest tenth over the readings that lie within some seconds, kb/s.
    pub(super) fn fastest_kbps(&self, within: Range<u64>) -> Option<f64> {
        let inside = |it: &&Fastest| it.at_s > within.start as f64 && it.at_s <= within.end as f64 + 0.5;
        let readings: Vec<f64> = self.fastest.iter().filter(inside).map(|it| it.kbps).collect();
        (!readings.is_empty()).then(|| readings.iter().sum::<f64>() / readings.len() as f64)
    }

    /// Seconds from `onset_s` to the first limit in force after it.
    pub(super) fn found_after_s(&self, onset_s: u64) -> Option<f64> {
        let onset_s = onset_s as f64;
        let first = self.decisions.iter().find(|it| it.at_s > onset_s && it.limit_per_s.is_some())?;
        Some(first.at_s - onset_s)
    }

    /// Seconds from `onset_s` to the first second from it on in which the bottleneck lost more than a
    /// twentieth.
    pub(super) fn lossy_after_s(&self, onset_s: u64) -> Option<f64> {
        let from_onset = self.seconds.iter().skip(onset_s as usize);
        let lossy = |second: &Second| second.dropped * 20 > second.dropped + second.sent;
        from_onset.zip(0u32..).find(|(second, _)| lossy(second)).map(|(_, at)| f64::from(at))
    }

    /// Returns whether a limit was in force before the crowd.
    pub(super) fn alarmed_early(&self, onset_s: u64) -> bool {
        self.decisions.iter().any(|it| it.at_s <= onset_s as f64 && it.limit_per_s.is_some())
    }

    fn within(&self, range: Range<u64>) -> &[Second] {
        let last = self.seconds.len();
        &self.seconds[(range.start as usize).min(last)..(range.end as usize).min(last)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_beyond_the_end_are_cut_and_nothing_gives_nothing() {
        let second = |offered| Second { offered, dropped: 1, ..Second::default() };
        let record = Record { seconds: [4, 4, 6].map(second).to_vec(), ..Record::default() };
        assert_eq!(record.per_second(1..99, |it| it.offered), Some(5.0));
        assert_eq!(record.per_second(3..99, |it| it.offered), None);
        assert_eq!(record.percent(0..2, |it| it.dropped, |it| it.offered), Some(25.0));
        assert_eq!(record.percent(0..2, |it| it.dropped, |it| it.admitted), None);
    }

    #[test]
    fn a_limit_before_the_crowd_finds_nothing() {
        let decision = |at_s, limit_per_s| Decision { at_s, limit_per_s };
        let mut record = Record {
            decisions: vec![decision(3.0, Some(5.0)), decision(8.0, None), decision(14.0, Some(9.0))],
            ..Record::default()
        };
        assert_eq!((record.found_after_s(10), record.alarmed_early(10)), (Some(4.0), true));
        record.decisions.remove(0);
        assert!(!record.alarmed_early(10));
    }

    #[test]
    fn losses_before_the_crowd_do_not_count() {
        let second = |dropped| Second { dropped, sent: 100, ..Second::default() };
        let record = Record { seconds: [50, 0, 5, 6].map(second).to_vec(), ..Record::default() };
        assert_eq!(record.lossy_after_s(1), Some(2.0));
        assert_eq!(record.lossy_after_s(4), None);
    }

    #[test]
    fn readings_count_where_they_end() {
        let reading = |at_s, kbps| Fastest { at_s, kbps, responses: 1 };
        let fastest = vec![reading(4.0, 1.0), reading(8.01, 3.0), reading(12.0, 5.0)];
        let record = Record { fastest, ..Record::default() };
        assert_eq!(record.fastest_kbps(4..12), Some(4.0));
        assert_eq!(record.fastest_kbps(12..20), None);
    }
}
