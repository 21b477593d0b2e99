//! Estimates of the gateway's sentry while a crowd comes.

use flashweir_load::trials::origins::{Belief, Plan};
use flashweir_testkit::{Gateway, StatusWatch};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(250);

pub(crate) struct Watch(StatusWatch<Plan>);

impl Watch {
    /// In the network namespace of the thread that calls it.
    pub(crate) fn start(gateway: &Gateway) -> Self {
        Self(StatusWatch::start(gateway.admin(), LOOK_EVERY, plan))
    }

    /// Estimates in each of `stretches`, which are times after `started`. All looks are written to a file of
    /// the folder `trace`, where there is one.
    pub(crate) fn stop(
        self,
        started: Option<Instant>,
        stretches: &[[Duration; 2]],
        trace: Option<(&Path, &str)>,
    ) -> Vec<Option<Belief>> {
        let seen = self.0.stop();
        let Some(started) = started else { return vec![None; stretches.len()] };
        let seen: Vec<(Duration, Plan)> =
            seen.into_iter().map(|(at, plan)| (at.saturating_duration_since(started), plan)).collect();
        if let Some((folder, name)) = trace {
            fs::write(folder.join(format!("{name}.csv")), lines(&seen)).expect("a writable directory");
        }
        let within = |[from, to]: &[Duration; 2]| {
            let judged = seen.iter().filter(|(at, _)| (*from..*to).contains(at));
            Belief::of(&judged.map(|(_, plan)| plan.clone()).collect::<Vec<_>>())
        };
        stretches.iter().map(within).collect()
    }
}

/// The service is the only one.
fn plan(status: &Value) -> Plan {
    let sentry = &status["services"][0]["sentry"];
    let plan = &sentry["plan"];
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    Plan {
        limit: number(&plan["limit"]),
        knee: number(&plan["knee"]),
        capacity_rps: number(&plan["capacity_rps"]),
        response_p95_s: number(&plan["response_p95_s"]),
        in_flight: number(&sentry["in_flight"]),
        waiting: number(&sentry["waiting"]),
        rule: plan["rule"].as_str().unwrap_or_default().to_owned(),
    }
}

fn lines(seen: &[(Duration, Plan)]) -> String {
    let mut text = String::from("second,limit,knee,capacity_rps,response_p95_s,in_flight,waiting,rule\n");
    for (at, plan) in seen {
        let Plan { limit, knee, capacity_rps, response_p95_s, in_flight, waiting, rule } = plan;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:.2},{limit},{knee:.2},{capacity_rps:.1},{response_p95_s:.3},{in_flight},{waiting},{rule}",
            at.as_secs_f64()
        );
    }
    text
}
