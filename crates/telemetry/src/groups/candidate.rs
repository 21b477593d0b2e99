//! Counts of candidate policies, for each of their classes.

use flashweir_admission::sentry::{ClassCounts, Compared};
use flashweir_core::Reason;

use super::ControlMetrics;
use crate::by_class::{ByClass, CLASS};
use crate::group::{LabelNames, MetricGroup, Row, Scrape};

/// Names one class of one service's candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateSlot(u8);

/// Counts of one class since the last time.
#[derive(Clone, Copy, Debug)]
pub struct CandidateNews<'a> {
    /// Slot of the class.
    pub slot: CandidateSlot,
    /// Counts of the candidate's gate.
    pub counts: &'a ClassCounts,
    /// Decisions of both policies about the same requests.
    pub compared: &'a Compared,
    /// Revenue of one request answered in time, for the candidate.
    pub revenue: f64,
}

/// All classes of all candidates there have been.
pub(crate) type CandidateMetrics = ByClass<CandidateFigures>;

/// One class of a candidate.
#[derive(Clone, Debug, Default)]
pub(crate) struct CandidateFigures {
    offered: u64,
    admitted: u64,
    left: u64,
    good: u64,
    revenue: f64,
    live_revenue: f64,
    compared: Compared,
}

impl ControlMetrics {
    /// Slot of the counters of this class of this service's candidate policy, as
    /// [`class_slot`](Self::class_slot).
    pub fn candidate_slot(&self, service: &str, class: &str) -> CandidateSlot {
        CandidateSlot(self.candidates.slot(service, class))
    }

    /// Adds the counts of a class of a candidate policy.
    pub fn count_candidate(&self, news: &CandidateNews<'_>) {
        self.candidates.change(news.slot.0, |known| {
            known.offered += news.counts.offered;
            known.admitted += news.counts.admitted;
            known.left += news.counts.left;
            known.good += news.counts.good;
            known.revenue += news.counts.good as f64 * news.revenue;
            known.live_revenue += news.compared.live_good as f64 * news.revenue;
            known.compared.add(news.compared);
        });
    }
}

impl MetricGroup for CandidateMetrics {
    fn title(&self) -> &'static str {
        "Candidate policy"
    }

    fn export(&self, scrape: &mut Scrape) {
        let known = self.known();
        for &(name, help, count) in COUNTS {
            let series = known.iter().map(|class| (class.labels(), count(&class.figures) as f64));
            scrape.counter_series(name, help, CLASS, series);
        }
        for &(labels, (name, help, values)) in SERIES {
            let series = known.iter().flat_map(|class| {
                values(&class.figures).into_iter().map(|(last, value)| (class.labels_and(last), value))
            });
            scrape.counter_series(name, help, labels, series);
        }
    }
}

const COUNTS: &[Row<CandidateFigures, u64>] = &[
    ("candidate_offered", "Requests that a candidate policy was asked about, by its classes.", |c| c.offered),
    ("candidate_admitted", "Requests that it would have let in.", |c| c.admitted),
    ("candidate_held", "Requests that it would have made wait, with any outcome.", |c| c.compared.held),
    ("candidate_left", "Requests whose client left while it would have made them wait.", |c| c.left),
];

const BY_POLICY: LabelNames = &["service", "class", "policy"];

/// By one label more, with its values and the number of each.
type Series = (LabelNames, Row<CandidateFigures, Vec<(&'static str, f64)>>);

const SERIES: &[Series] = &[
    (
        &["service", "class", "reason"],
        ("candidate_shed", "Requests that it would have refused, by the limit met.", |c| {
            Reason::ALL.iter().map(|r| (r.as_str(), c.compared.shed[*r as usize] as f64)).collect()
        }),
    ),
    (
        &["service", "class", "let_in_by"],
        (
            "candidate_agreement",
            "Requests by who let them in: both policies, only the live one, only the candidate, neither.",
            |CandidateFigures { compared, .. }| {
                vec![
                    ("both", compared.both as f64),
                    ("live", compared.only_live as f64),
                    ("candidate", compared.only_candidate as f64),
                    ("neither", compared.neither as f64),
                ]
            },
        ),
    ),
    (
        BY_POLICY,
        (
            "candidate_good",
            "Answers within the candidate's target, with either policy; of what never ran, as estimated.",
            |c| vec![("live", c.compared.live_good as f64), ("candidate", c.good as f64)],
        ),
    ),
    (
        BY_POLICY,
        ("candidate_revenue", "What these are worth to the candidate, with either policy.", |c| {
            vec![("live", c.live_revenue), ("candidate", c.revenue)]
        }),
    ),
];
