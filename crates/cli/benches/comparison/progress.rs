//! A line for each visit: a run of twenty minutes should not be silent.

use crate::stage::Visit;
use flashweir_load::trials::comparison::Scene;

pub(crate) struct Progress {
    done: usize,
    of: usize,
}

impl Progress {
    pub(crate) fn new(of: usize) -> Self {
        Self { done: 0, of }
    }

    pub(crate) fn begin(&mut self, round: usize, scene: &Scene, through: &str) {
        self.done += 1;
        eprint!("{:>3}/{} round {}, {}, through {through}: ", self.done, self.of, round + 1, scene.title);
    }

    pub(crate) fn done(&self, visit: &Visit) {
        let outcome = &visit.outcome;
        let p99 = outcome.p99_admitted_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.0} ms"));
        eprintln!(
            "goodput {:.2} of {:.1}/s, p99 {p99}, gold in time {:.2}, refused {:.2}, timed out {:.2}, failed {:.2}",
            outcome.goodput,
            visit.capacity_rps,
            outcome.gold_in_time,
            outcome.refused,
            outcome.timed_out,
            outcome.failed
        );
    }
}
