//! Servers of one who knows the profile.

use super::scenario::{ApplicationModel, LATE_QUANTILE_FACTOR, Scenario};
use super::traffic::ProfileWalk;
use flashweir_core::limits::PROVISIONED_SERVERS;
use flashweir_provisioning::ApplicationPolicy;
use flashweir_provisioning::queueing::{ArrivalStream, Dispatch, size};
use std::collections::VecDeque;

/// For each interval of the plan, the servers to have ordered: the most that any time needs until an order
/// would be up. By the same model as the planner's, without any margin.
pub(super) fn orders(scenario: &Scenario, model: &ApplicationModel, policy: &ApplicationPolicy) -> Vec<u32> {
    let needed = needed_by_interval(scenario, model, policy);
    let interval = scenario.policy.interval;
    // An order of the interval before is up when the longest start-up is over.
    let ahead = scenario.start_up.longest().as_nanos().div_ceil(interval.as_nanos().max(1)) as usize + 1;
    sliding_maximum(&needed, ahead)
}

/// Servers for the highest rate of each interval.
fn needed_by_interval(scenario: &Scenario, model: &ApplicationModel, policy: &ApplicationPolicy) -> Vec<u32> {
    let mut walks: Vec<ProfileWalk<'_>> =
        model.classes.iter().map(|class| ProfileWalk::new(&class.rate)).collect();
    let ticks = scenario.ends_at().as_nanos().div_ceil(scenario.tick.as_nanos() as u64);
    let per_interval = (scenario.policy.interval.as_nanos() / scenario.tick.as_nanos()).max(1) as u64;
    let target_mean_s = policy.ladder[0].target.as_secs_f64() / LATE_QUANTILE_FACTOR;
    let mut needed = Vec::new();
    let mut highest_rps = 0.0f64;
    for tick in 1..=ticks {
        let rate_rps = walks.iter_mut().map(|walk| walk.next_rate(scenario.tick)).sum();
        highest_rps = highest_rps.max(rate_rps);
        if tick % per_interval == 0 || tick == ticks {
            let stream = ArrivalStream { rate_rps: highest_rps, squared_variation: 1.0 };
            let sized =
                size(stream, model.service, target_mean_s, Dispatch::SharedQueue, PROVISIONED_SERVERS);
            let servers = sized.map_or(policy.servers_max, |sized| sized.servers);
            needed.push(servers.clamp(policy.servers_min, policy.servers_max));
            highest_rps = 0.0;
        }
    }
    needed
}

/// The maximum of each value and the `ahead` values after it.
fn sliding_maximum(values: &[u32], ahead: usize) -> Vec<u32> {
    let mut window: VecDeque<usize> = VecDeque::new();
    let mut maxima = vec![0; values.len()];
    for place in (0..values.len()).rev() {
        while window.back().is_some_and(|&later| values[later] <= values[place]) {
            window.pop_back();
        }
        window.push_back(place);
        while window.front().is_some_and(|&later| later > place + ahead) {
            window.pop_front();
        }
        maxima[place] = window.front().map_or(0, |&largest| values[largest]);
    }
    maxima
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_looks_ahead_and_no_further() {
        assert_eq!(sliding_maximum(&[1, 5, 2, 2, 9, 1], 2), [5, 5, 9, 9, 9, 1]);
        assert_eq!(sliding_maximum(&[3, 1], 0), [3, 1]);
        assert!(sliding_maximum(&[], 4).is_empty());
    }
}
