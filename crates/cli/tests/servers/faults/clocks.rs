//! Clocks that jump by an hour, both ways: set by libfaketime between the gateway and the kernel.

use flashweir_testkit::{Clocks, FakeClock, Gateway, GatewayBuilder, Upstream, eventually};

use crate::faults::some_traffic;

const BINARY: &str = env!("CARGO_BIN_EXE_flashweir");
const HOUR_S: i64 = 3_600;

fn gateway(clock: &FakeClock, upstream: &Upstream) -> Gateway {
    GatewayBuilder::new(&clock.binary()).upstream(&upstream.url()).start()
}

/// The hour that the gateway believes in: of the date in its own answer.
fn hour(gateway: &Gateway) -> String {
    let date = gateway.get("/").field("date").expect("a date").to_owned();
    let time = date.split(' ').nth(4).unwrap_or_else(|| panic!("{date}"));
    time.split(':').next().unwrap_or_default().to_owned()
}

#[test]
fn setting_the_time_by_an_hour_either_way_changes_nothing_for_clients() {
    const TEST: &str = "setting_the_time_by_an_hour_either_way";
    let Some(clock) = FakeClock::require(TEST, BINARY, Clocks::TimeOfDay) else { return };
    let upstream = Upstream::saying("served");
    let gateway = gateway(&clock, &upstream);
    some_traffic(&gateway);
    for shift_s in [HOUR_S, -HOUR_S, 2 * HOUR_S] {
        let before = hour(&gateway);
        clock.shift_s(shift_s);
        eventually("another hour in the answers", || (hour(&gateway) != before).then_some(()));
        some_traffic(&gateway);
        assert_eq!(gateway.ask_admin("/readyz").status(), 200, "at {shift_s}");
        gateway.wait_in_flight(0);
    }
    let shed = gateway.metrics().sum("flashweir_requests_shed_total");
    assert_eq!(shed, 0.0, "a clock is no reason to refuse");
}

/// As after a machine's sleep: every timer is due, every connection old.
#[test]
fn a_monotonic_clock_that_leaps_an_hour_costs_no_answer() {
    const TEST: &str = "a_monotonic_clock_that_leaps_an_hour";
    let Some(clock) = FakeClock::require(TEST, BINARY, Clocks::All) else { return };
    let upstream = Upstream::saying("served");
    let gateway = gateway(&clock, &upstream);
    some_traffic(&gateway);
    let before = hour(&gateway);
    clock.shift_s(HOUR_S);
    eventually("another hour in the answers", || (hour(&gateway) != before).then_some(()));
    some_traffic(&gateway);
    assert_eq!(gateway.ask_admin("/readyz").status(), 200);
    gateway.wait_in_flight(0);
}
