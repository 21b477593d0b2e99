//! A gate that takes over where another was.

use flashweir_testkit::packet::flag;
use libbpf_rs::{MapCore as _, MapHandle};

use super::*;

/// All maps of a gate but its clock's, as a link would give them.
fn maps_of(gate: &KernelGate) -> Vec<MapHandle> {
    let names = [
        "control",
        "plans",
        "buckets",
        "recent",
        "answered_at",
        "answers",
        "attempts",
        "endpoints",
        "preferred",
        "tier_networks",
        "purged",
        "counts",
        "passes",
    ];
    names.map(|name| gate.program.map(name).expect("a map")).into()
}

fn take_over(maps: &[MapHandle]) -> KernelGate {
    KernelGate::load_over(maps, true).expect("the gate before could be loaded")
}

#[test]
fn budgets_counters_and_handshakes_go_on() {
    let Some(mut first) = require_closed("a gate that takes over", ExcessTreatment::Answer) else { return };
    let accepted = first.reply(&syn());
    first.apply(&[open_to(10.0, 10, ExcessTreatment::Answer)]).expect("a plan");
    first.tell(3 * SECOND_NS);
    first.purge(client(9).ip(), Duration::from_secs(60)).expect("a purge");
    let opening = |number| Segment::syn(client(number), address(SERVER));
    for number in 0..4 {
        assert_eq!(first.verdict(&opening(number)), PASS);
    }
    let services = first.services.clone();
    let mut second = take_over(&maps_of(&first));
    assert!(second.took_over());
    // It is not the first's process that ends here: its clock and keys are in the maps.
    drop(first);
    assert!(second.inherited().is_none(), "whose services are not known yet");
    second.set_services(services).expect("the same");
    let inherited = Tiers::one(Ceiling { rate: Rate::from_per_second(10.0), burst: 10 });
    assert_eq!(second.inherited(), Some(&[inherited][..]));
    // Six of ten tokens are left, before any plan.
    assert_eq!(second.verdict(&opening(9)), DROP, "purged");
    let verdicts: Vec<_> = (10..17).map(|number| second.verdict(&opening(number))).collect();
    assert_eq!(verdicts, [PASS, PASS, PASS, PASS, PASS, PASS, SEND_BACK]);
    let request = syn().after(&accepted).carrying(b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(second.reply(&request).flags & flag::FIN, flag::FIN);
    let counts = second.counts();
    assert_eq!(
        (counts.offered, counts.admitted, counts.answered, counts.purged),
        (13, 10, 2, 1),
        "{counts:?}"
    );
    // A plan of the second gate goes on from there.
    second.apply(&[open_to(10.0, 10, ExcessTreatment::Drop)]).expect("a plan");
    assert_eq!(second.verdict(&opening(20)), DROP);
    assert!(second.inherited().is_none());
}

#[test]
fn a_plan_that_nobody_stood_for_any_more_is_not_taken_up_again_unless_the_gate_stayed_closed() {
    let Some(mut first) = require_closed("a gate that takes over late", ExcessTreatment::Drop) else {
        return;
    };
    let services = first.services.clone();
    for (fails_closed, verdict) in [(true, DROP), (false, PASS)] {
        first.fail_closed(fails_closed).expect("a flag");
        first.tell_only(first.control.beat_ns + 60 * SECOND_NS);
        assert_eq!(first.verdict(&syn()), verdict);
        let mut second = take_over(&maps_of(&first));
        second.set_services(services.clone()).expect("the same");
        assert_eq!((second.inherited().is_some(), second.verdict(&syn())), (fails_closed, verdict));
        // The first would not know the orders of the second to the kernel.
        first.control = second.control;
    }
}

#[test]
fn other_services_start_open_and_another_layout_starts_anew() {
    let Some(first) = require_closed("a gate that takes over others", ExcessTreatment::Drop) else { return };
    let maps = maps_of(&first);
    let mut second = take_over(&maps);
    let mut others = first.services.clone();
    others[0].endpoints.pop();
    second.set_services(others).expect("services");
    assert_eq!(second.verdict(&syn()), PASS, "as every service without a plan");

    let lacking: Vec<_> = maps.into_iter().filter(|map| map.name() != "buckets").collect();
    let mut third = take_over(&lacking);
    assert!(!third.took_over());
    third.set_services(first.services.clone()).expect("a service");
    assert_eq!(third.verdict(&syn()), PASS);
    assert_ne!(third.control.attempts_key, first.control.attempts_key);
}
