//! Goal: the number of servers is the fewest that meets the target by the model, for any stream. Method:
//! against a search through all numbers.

use crate::queueing::{ArrivalStream, Dispatch, ServiceTime, WaitModel, mean_wait_s, servers_needed, size};
use proptest::prelude::*;

const MODELS: [WaitModel; 3] = [WaitModel::Kingman, WaitModel::Daley, WaitModel::AllenCunneen];
const DISPATCHES: [Dispatch; 3] = [Dispatch::Random, Dispatch::RoundRobin, Dispatch::SharedQueue];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_search_finds_the_fewest_servers(
        rate_rps in 0.01f64..5_000.0, gaps in 0.0f64..20.0, mean_s in 1e-4f64..0.5, services in 0.0f64..20.0,
        slack in 0.001f64..50.0, model in 0usize..3, dispatch in 0usize..3,
    ) {
        let stream = ArrivalStream { rate_rps, squared_variation: gaps };
        let service = ServiceTime { mean_s, squared_variation: services };
        let (model, dispatch, target_s) = (MODELS[model], DISPATCHES[dispatch], mean_s * (1.0 + slack));
        const MAX: u32 = 600;
        let meets = |servers| mean_wait_s(model, stream, service, servers, dispatch)
            .is_some_and(|wait_s| wait_s <= target_s - mean_s);
        let found = servers_needed(model, stream, service, target_s, dispatch, MAX);
        let fewest = (1..=MAX).find(|&servers| meets(servers));
        // The target minus the service time is rounded: at the edge both answers are right.
        let nearly = |servers: u32| mean_wait_s(model, stream, service, servers, dispatch)
            .is_some_and(|wait_s| (wait_s / (target_s - mean_s) - 1.0).abs() < 1e-6);
        prop_assert!(found == fewest || fewest.or(found).is_some_and(nearly), "{found:?} {fewest:?}");
    }

    /// More requests, longer ones, and tighter targets never need fewer servers; any wait is at least zero.
    #[test]
    fn more_work_never_needs_fewer_servers(
        rate_rps in 0.1f64..3_000.0, more in 1.0f64..3.0, mean_s in 1e-3f64..0.1, variation in 0.0f64..5.0,
        slack in 0.5f64..50.0, tighter in 0.3f64..1.0, dispatch in 0usize..3,
    ) {
        let dispatch = DISPATCHES[dispatch];
        let needed = |rate_rps, mean_s, target_s| {
            let stream = ArrivalStream { rate_rps, squared_variation: 1.0 };
            let service = ServiceTime { mean_s, squared_variation: variation };
            let model = WaitModel::AllenCunneen;
            servers_needed(model, stream, service, target_s, dispatch, 5_000).unwrap_or(u32::MAX)
        };
        let target_s = mean_s * (1.0 + slack);
        let usual = needed(rate_rps, mean_s, target_s);
        prop_assert!(needed(rate_rps * more, mean_s, target_s) >= usual);
        prop_assert!(needed(rate_rps, mean_s * more.min(1.0 + slack * 0.9), target_s) >= usual);
        prop_assert!(needed(rate_rps, mean_s, target_s * tighter) >= usual);
    }

    #[test]
    fn a_size_meets_its_target_by_its_own_model(
        rate_rps in 0.1f64..3_000.0, mean_s in 1e-3f64..0.1, slack in 0.01f64..50.0, dispatch in 0usize..3,
    ) {
        let stream = ArrivalStream { rate_rps, squared_variation: 1.0 };
        let service = ServiceTime { mean_s, squared_variation: 1.0 };
        let (dispatch, target_s) = (DISPATCHES[dispatch], mean_s * (1.0 + slack));
        if let Some(found) = size(stream, service, target_s, dispatch, 10_000) {
            let wait_s = mean_wait_s(found.model, stream, service, found.servers, dispatch).expect("not always busy");
            prop_assert!(wait_s <= (target_s - mean_s) * (1.0 + 1e-9));
        }
    }
}
