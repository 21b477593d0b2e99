//! Whether a run fits into memory: told before it begins.

use crate::problem::{Problem, wrong};
use flashweir_core::Duration;
use flashweir_core::limits::{SCENARIO_MEMORY_BYTES, SIM_PEOPLE, SIM_PLANS};
use flashweir_sim::request::{NetworkModel, Policy, Scenario};
use flashweir_workload::people::SessionLength;

/// Bytes of one bin of one series, of one plan, of one document of a popularity, and of a person with their try.
const BIN_BYTES: u64 = 160;
const PLAN_BYTES: u64 = 200;
const DOCUMENT_BYTES: u64 = 32;
const PERSON_BYTES: u64 = 360;
/// Work in scenario files does not depend on how large documents are.
pub(crate) const NO_BYTES: f64 = 0.0;

/// Refuses what all seeds together would keep, beyond [`SCENARIO_MEMORY_BYTES`], and crowds of which it is certain
/// that more than [`SIM_PEOPLE`] would be present at once. Crowds that pile up because nobody serves them are the
/// simulator's to refuse: how many stay depends on the policy.
pub(crate) fn check(scenario: &Scenario, documents: u64, seeds: u32) -> Result<(), Problem> {
    let people = people_at_once(scenario);
    if people > SIM_PEOPLE as f64 {
        return wrong(
            "workload",
            format!("about {people:.0} people would be present at once, at most {SIM_PEOPLE} can be"),
        );
    }
    let bins = scenario.schedule.length().as_nanos() / scenario.bin.as_nanos().max(1) + 1;
    let series = u64::try_from(bins).unwrap_or(u64::MAX).saturating_mul(scenario.classes.len() as u64 + 1);
    let kept = series.saturating_mul(BIN_BYTES).saturating_add(plans(scenario).saturating_mul(PLAN_BYTES));
    let run = documents.saturating_mul(DOCUMENT_BYTES).saturating_add(people as u64 * PERSON_BYTES);
    let bytes = kept.saturating_mul(seeds.into()).saturating_add(run);
    if bytes > SCENARIO_MEMORY_BYTES {
        return wrong(
            "seeds",
            format!(
                "{seeds} runs would keep about {} MiB, at most {} are allowed: fewer seeds, wider bins or a \
                 shorter run",
                bytes >> 20,
                SCENARIO_MEMORY_BYTES >> 20
            ),
        );
    }
    Ok(())
}

fn plans(scenario: &Scenario) -> u64 {
    let Policy::FlashCrowd(policy) = &scenario.policy else { return 0 };
    let plans = scenario.schedule.length().as_nanos() / policy.settings.interval.as_nanos().max(1);
    u64::try_from(plans).unwrap_or(u64::MAX).min(SIM_PLANS as u64)
}

/// The least that can be present in the busiest moment: everybody is answered at once and goes on as they like.
fn people_at_once(scenario: &Scenario) -> f64 {
    let schedule = &scenario.schedule;
    // Scenario files know no packets, and no work by the byte.
    let NetworkModel::Delay(one_way_delay) = scenario.network else { return 0.0 };
    let of_stream = |stream: &flashweir_workload::Stream| {
        let expected = stream.arrivals.expected();
        let peak = stream.arrivals.profile().map_or(0.0, flashweir_workload::RateProfile::peak_rate);
        let weights: f64 = stream.classes.iter().map(|share| share.weight).sum();
        let stay_s: f64 = stream
            .classes
            .iter()
            .filter_map(|share| {
                scenario.classes.get(usize::from(share.class)).map(|class| (share.weight, class))
            })
            .map(|(weight, class)| weight / weights * stay_s(class, one_way_delay))
            .sum();
        (peak * stay_s).min(expected)
    };
    schedule.streams().iter().map(of_stream).sum()
}

fn stay_s(class: &flashweir_sim::request::ClassModel, one_way_delay: Duration) -> f64 {
    let session = &class.habits.session;
    let requests = match session.requests {
        SessionLength::Exactly(count) => f64::from(count.get()),
        SessionLength::Geometric { mean } => mean.max(1.0),
        SessionLength::Endless => f64::INFINITY,
    };
    let asking_s = 2.0 * one_way_delay.as_secs_f64() + class.work.mean_s(NO_BYTES);
    requests * asking_s + (requests - 1.0) * session.think.mean().as_secs_f64()
}
