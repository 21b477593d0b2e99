//! The metrics of candidate policies, by service and by the candidate's class.

use core::fmt;

use flashweir_core::Reason;

use super::{About, Catalogue, Sink, Values};
use crate::candidates::KnownCandidate;

const CLASS: &[&str] = &["service", "class"];
const CLASS_AND_REASON: &[&str] = &["service", "class", "reason"];
const CLASS_AND_POLICY: &[&str] = &["service", "class", "policy"];
const CLASS_AND_WHO: &[&str] = &["service", "class", "let_in_by"];

impl Catalogue {
    pub(super) fn visit_candidates(&self, sink: &mut dyn Sink) -> fmt::Result {
        let classes = self.control.candidates().known();
        let counts: [(About, Count); 4] = [
            (
                About::new(
                    "candidate_offered",
                    "Requests that a candidate policy was asked about, by its classes.",
                ),
                |c| c.offered,
            ),
            (About::new("candidate_admitted", "Requests that it would have let in."), |c| c.admitted),
            (
                About::new(
                    "candidate_held",
                    "Requests that it would have made wait, whatever became of them.",
                ),
                |c| c.compared.held,
            ),
            (
                About::new(
                    "candidate_left",
                    "Requests whose client left while it would have made them wait.",
                ),
                |c| c.left,
            ),
        ];
        for (about, count) in counts {
            let values = classes.iter().map(|class| (class.labels(None), count(class) as f64));
            sink.metric(about, Values::CounterSeries(CLASS, values.collect()))?;
        }
        let series: [(About, Names, Series); 4] = [
            (
                About::new("candidate_shed", "Requests that it would have refused, by the limit met."),
                CLASS_AND_REASON,
                |c| Reason::ALL.iter().map(|r| (r.as_str(), c.compared.shed[*r as usize] as f64)).collect(),
            ),
            (
                About::new(
                    "candidate_agreement",
                    "Requests by who let them in: both policies, only the live one, only the candidate, neither.",
                ),
                CLASS_AND_WHO,
                |c| {
                    let compared = &c.compared;
                    vec![
                        ("both", compared.both as f64),
                        ("live", compared.only_live as f64),
                        ("candidate", compared.only_candidate as f64),
                        ("neither", compared.neither as f64),
                    ]
                },
            ),
            (
                About::new(
                    "candidate_good",
                    "Answers within the candidate's target, with either policy; of what never ran, as estimated.",
                ),
                CLASS_AND_POLICY,
                |c| vec![("live", c.compared.live_good as f64), ("candidate", c.good as f64)],
            ),
            (
                About::new("candidate_revenue", "What these are worth to the candidate, with either policy."),
                CLASS_AND_POLICY,
                |c| vec![("live", c.live_revenue), ("candidate", c.revenue)],
            ),
        ];
        for (about, names, of) in series {
            let values = classes.iter().flat_map(|class| {
                of(class).into_iter().map(|(last, value)| (class.labels(Some(last)), value))
            });
            sink.metric(about, Values::CounterSeries(names, values.collect()))?;
        }
        Ok(())
    }
}

type Count = fn(&KnownCandidate) -> u64;
type Names = &'static [&'static str];
type Series = fn(&KnownCandidate) -> Vec<(&'static str, f64)>;

impl KnownCandidate {
    fn labels(&self, last: Option<&str>) -> Vec<String> {
        [self.service.as_str(), &self.class].into_iter().chain(last).map(str::to_owned).collect()
    }
}
