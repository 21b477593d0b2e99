//! Goal: no controller takes another's effect, or another's shortage, for its own. Method: plants where
//! only one part of a response's time grows: at the origin, on the way to the client, or by clients who
//! leave.

use crate::composition::MS;
use crate::composition::plant::{CALM_S, Composition, Plant, aborters, crowd};

#[test]
fn where_only_the_time_at_the_origin_grows_news_has_no_ceiling() {
    for work in [MS, 5 * MS, 50 * MS] {
        let plant = Plant::Processor { count: 1, work };
        for times in [1.5, 10.0] {
            let (_, outcome) = crowd(plant, times, Composition::Default, 1);
            let ceilings = outcome.plans.iter().filter(|plan| plan.explanation.ceiling_rps.is_some()).count();
            assert_eq!(ceilings, 0, "{plant:?} at {times}");
            assert!(outcome.gate.shed > 0, "{plant:?} at {times}: requests were refused");
        }
    }
}

#[test]
fn where_only_delivery_grows_the_sentry_refuses_nobody() {
    let plant = Plant::Link { bits_per_s: 20_000_000, packets: 200, answer_bytes: 20_000 };
    let (_, outcome) = crowd(plant, 5.0, Composition::Default, 1);
    let first = outcome.plans.iter().find(|plan| plan.explanation.ceiling_rps.is_some()).expect("a ceiling");
    assert!(first.at.as_secs_f64() < CALM_S as f64 + 2.0, "{:?}", first.at);
    let [by_news, by_sentry] = crate::composition::plant::refused(plant, 5.0, 1);
    assert!(by_news > 5_000 && by_sentry == 0, "{by_news} by NEWS, {by_sentry} by the sentry");
}

/// Goal: clients that leave are no evidence. Method: four times as many requests as the origin could serve,
/// given up 3 ms after they came, beside people who stay.
#[test]
fn clients_who_leave_at_once_take_nobody_elses_room() {
    for seed in 1..=3 {
        let found = aborters(seed);
        println!("seed {seed}: {found:?}");
        assert!(found.honest_in_time >= 0.95, "seed {seed}: {found:?}");
        assert_eq!(found.ceilings, 0, "seed {seed}");
    }
}
