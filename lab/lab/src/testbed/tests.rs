//! Goal: the whole testbed works, small. Method: a crowd of two seconds after two of quiet, against
//! nothing, and against a limit where the build has one.

use super::perform;
use crate::experiments::testbed::{Beside, Bottleneck, Protection, Scene, Server, TestbedRun};
use flashweir_load::StopFlag;
use flashweir_testbed::{Testbed, TestbedError, program};
use flashweir_testkit::skip;
use flashweir_workload::{ArrivalProcess, RateProfile};
use std::time::Duration;

fn tiny(protection: Protection) -> TestbedRun {
    let second = Duration::from_secs(1);
    let profile = RateProfile::step(40.0, 200.0, second, 2 * second).expect("a valid profile");
    let scene = Scene {
        bottleneck: Bottleneck { bits_per_s: 2_000_000, buffer_bytes: 20_000 },
        one_way: Duration::from_millis(2),
        server: Server::Pages,
        arrivals: ArrivalProcess::Poisson(profile),
        quiet_s: 1,
        crowd_s: 1,
        patience: second,
        good_within: second,
        reading_s: 1,
        beside: Beside::Readers { per_s: 20.0 },
    };
    TestbedRun { scene, protection, seed: 1 }
}

/// Runs of a tiny crowd, at most.
const ATTEMPTS: u32 = 3;

/// Returns whether this machine can; prints a loud line if not.
fn can(test: &str) -> bool {
    match Testbed::new(&[]) {
        Err(TestbedError::Missing(what)) => skip(test, &what),
        Err(other) => panic!("{other}"),
        Ok(_) if program("nginx").is_none() => skip(test, "the program `nginx` is missing"),
        Ok(_) => return true,
    }
    false
}

#[test]
fn a_tiny_crowd_is_counted_alike_by_clients_server_and_link() {
    if !can("a tiny crowd on the testbed") {
        return;
    }
    // On a machine so busy that people come late some come after the last second that is counted: then it is
    // tried again.
    let mut attempt = 0;
    let record = loop {
        attempt += 1;
        let record = perform(&tiny(Protection::None), &StopFlag::default()).expect("a run");
        println!("attempt {attempt} of {ATTEMPTS}: doubts {:?}", record.doubts);
        if record.doubts.is_empty() || attempt == ATTEMPTS {
            break record;
        }
    };
    let sum = |count: fn(&crate::experiments::testbed::Second) -> u64| {
        record.seconds.iter().map(count).sum::<u64>()
    };
    let came = record.people["crowd"].unique_offered;
    assert!(came > 150, "{record:?}");
    // The last second's handshakes may end after it.
    assert!(
        sum(|it| it.unique_offered) <= came + 1 && sum(|it| it.unique_offered) * 10 >= came * 9,
        "{record:?}"
    );
    assert!(sum(|it| it.offered) >= sum(|it| it.unique_offered), "{record:?}");
    assert!(sum(|it| it.admitted) <= came + 1 && sum(|it| it.admitted) > 0, "{record:?}");
    assert!(sum(|it| it.dropped) > 0, "200/s of 3 kB do not fit into 2 Mb/s: {record:?}");
    assert!(!record.fastest.is_empty() && record.decisions.is_empty(), "{record:?}");
    let before = record.people["beside, before"];
    assert!(before.completed > 0 && before.median_s.is_some_and(|median| median >= 0.1), "{before:?}");
}

#[cfg(feature = "kernel")]
#[test]
fn a_limit_lets_in_what_it_says() {
    if !can("a tiny limited crowd on the testbed") {
        return;
    }
    let record = perform(&tiny(Protection::Static { per_s: 20.0 }), &StopFlag::default()).expect("a run");
    let admitted: u64 = record.seconds.iter().map(|second| second.admitted).sum();
    // The bucket's 50 and two seconds of 20.
    assert!((20..=95).contains(&admitted), "{record:?}");
}

#[test]
fn a_stop_ends_a_run() {
    if !can("a testbed that is stopped") {
        return;
    }
    let stop = StopFlag::default();
    stop.stop();
    let error = perform(&tiny(Protection::None), &stop).expect_err("stopped");
    assert_eq!(error.to_string(), "interrupted");
}
