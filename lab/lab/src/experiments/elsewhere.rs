//! Figures that no simulation can show: where they are measured.

use crate::experiments::testbed::Trial;
use crate::experiments::testbed::{best_static, bulk_bystander, cost, fastest_tenth, network_limited};

/// A figure of a paper that a benchmark or the real thing makes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// Its name, such as `NEWS-F19`.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The command that measures it.
    pub command: &'static str,
}

/// All there are.
pub const ELSEWHERE: &[Elsewhere] = &[
    Elsewhere {
        id: "RADAR-PROCESSES",
        title: "Figures 4.4, 4.6 to 4.8 and 4.10 to 4.12 with real processes, scaled (docs/replication.md)",
        command: "make bench-replicas",
    },
    on_testbed(fastest_tenth::TRIAL, "flashweir reproduce --testbed NEWS-F19"),
    on_testbed(network_limited::TRIAL, "flashweir reproduce --testbed NEWS-F20"),
    on_testbed(best_static::TRIAL, "flashweir reproduce --testbed NEWS-F21"),
    on_testbed(cost::TRIAL, "flashweir reproduce --testbed NEWS-T2"),
    on_testbed(bulk_bystander::TRIAL, "flashweir reproduce --testbed NEWS-8.6"),
];

const fn on_testbed(trial: Trial, command: &'static str) -> Elsewhere {
    Elsewhere { id: trial.subject.id, title: trial.subject.title, command }
}
