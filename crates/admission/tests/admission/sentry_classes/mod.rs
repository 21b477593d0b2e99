//! Goal: what the sentry's gates promise to classes, for any input and any number of gates. Method: random
//! operations, time included, against real gates that share one count, with a ledger that is checked after
//! every step.

mod world;

use flashweir_admission::sentry::{
    Arrived, BatchTest, Common, Decide, Ending, Policy, Position, Released, Sample, SentryGate, SentryRequest,
};
use flashweir_core::{Duration, Instant, Reason};
use proptest::prelude::*;
use std::sync::Arc;
use world::{Step, World, plan, steps};

fn run(gates: usize, decide: Decide, guaranteed: [u64; 4], steps: &[Step]) -> Result<(), TestCaseError> {
    let mut world = World::new(gates, plan(1, decide, 4, guaranteed));
    for (index, step) in steps.iter().enumerate() {
        world.step(step)?;
        if matches!(step, Step::Wait(_) | Step::Limit(_)) {
            prop_assert!(world.nobody_waits_too_long());
            let wakes = world.gates.iter().filter_map(SentryGate::next_wake).min();
            prop_assert!(wakes.is_none_or(|wakes| wakes > world.now), "asked again and again");
        }
        if index % 20 == 0 {
            world.drain()?;
        }
    }
    world.drain()
}

fn guarantees() -> impl Strategy<Value = [u64; 4]> {
    let rate = prop_oneof![3 => Just(0u64), 1 => prop_oneof![Just(1u64), Just(2), Just(5), Just(20)]];
    [rate.clone(), rate.clone(), rate.clone(), rate]
}

proptest! {
    /// No request is lost, passed over or kept too long; bounds hold over all gates together; what is
    /// guaranteed goes.
    #[test]
    fn reservation_keeps_its_promises(gates in 1usize..5, guaranteed in guarantees(), steps in steps()) {
        run(gates, Decide::Reservation, guaranteed, &steps)?;
    }

    #[test]
    fn batch_keeps_its_promises(
        gates in 1usize..3, guaranteed in guarantees(), steps in steps(), servers_milli in 0u64..9_000,
        quantile_milli in 1_000u64..6_000, is_whole: bool,
    ) {
        let test = BatchTest { servers_milli, quantile_milli, is_whole };
        run(gates, Decide::Batch(test), guaranteed, &steps)?;
    }

    #[test]
    fn threshold_keeps_its_promises(gates in 1usize..3, guaranteed in guarantees(), steps in steps()) {
        run(gates, Decide::Threshold, guaranteed, &steps)?;
    }

    /// The measurements of gates add up to what one gate would have: the order does not matter.
    #[test]
    fn samples_of_gates_add_up(gates in 2usize..5, steps in steps()) {
        let mut world = World::new(gates, plan(1, Decide::Reservation, 4, [0; 4]));
        steps.iter().try_for_each(|step| world.step(step))?;
        let samples: Vec<Sample> = world.gates.iter_mut().map(|gate| gate.drain(world.now)).collect();
        let (mut forth, mut back) = (Sample::default(), Sample::default());
        samples.iter().for_each(|sample| forth.merge(sample));
        samples.iter().rev().for_each(|sample| back.merge(sample));
        prop_assert_eq!((forth.offered, forth.in_flight, forth.held as usize), (world.requests, world.count(), world.held.len()));
        prop_assert_eq!(forth.in_flight_nanos, world.in_flight_nanos);
        prop_assert_eq!(&forth.classes, &back.classes);
        prop_assert_eq!(&forth.latency_us, &back.latency_us);
    }
}

/// Goal: deciding allocates nothing once the queue has been as long as it may be. Method: arrivals, ends,
/// releases and leavers of four classes and many clients, in each way of deciding, counted by an allocator.
#[test]
fn deciding_allocates_nothing() {
    let test = BatchTest { servers_milli: 3_000, quantile_milli: 3_000, is_whole: false };
    for decide in [Decide::Reservation, Decide::Batch(test), Decide::Threshold] {
        let plan = plan(1, decide, 6, [5, 0, 0, 1]);
        let policy = Policy::single(Duration::from_secs(1));
        let common = Arc::new(Common::new(2));
        let mut gates: Vec<SentryGate<u64>> =
            (0..2).map(|index| SentryGate::new(common.clone(), index, &policy, &plan)).collect();
        let mut permits = Vec::with_capacity(64);
        let mut tickets = Vec::with_capacity(64);
        let (mut now, mut decided) = (Instant::from_secs(1), 0);
        let mut run = |count: u64| {
            for request in 0..count {
                now += Duration::from_micros(request % 7_000);
                let gate = request as usize % 2;
                let asked = SentryRequest {
                    class: (request % 4) as u8,
                    url_class: request as u32 % 9,
                    client_key: request % 31,
                    position: Position::ALL[request as usize % 3],
                    is_uncounted: false,
                };
                match gates[gate].arrive(now, asked, request) {
                    Arrived::Admit(_, permit) => permits.push((gate, permit)),
                    Arrived::Held(ticket) | Arrived::HeldInsteadOf(ticket, ..) => {
                        tickets.truncate(20);
                        tickets.push((gate, ticket));
                    }
                    Arrived::Shed(..) => decided += 1,
                }
                if request % 3 == 0
                    && let Some((gate, permit)) = permits.pop()
                {
                    gates[gate].end(
                        now,
                        permit,
                        Ending { completed: true, measured_us: Some(900), ..Ending::default() },
                    );
                }
                if request % 11 == 0
                    && let Some((gate, ticket)) = tickets.pop()
                {
                    gates[gate].leave(now, ticket);
                }
                for (index, gate) in gates.iter_mut().enumerate() {
                    while let Some(released) = gate.next(now) {
                        decided += 1;
                        if let Released::Admit(_, permit) = released {
                            permits.push((index, permit));
                        }
                    }
                    std::hint::black_box(gate.who_waits());
                }
            }
        };
        run(10_000);
        let info = allocation_counter::measure(|| run(50_000));
        assert_eq!(info.count_total, 0, "{decide:?} allocated {} times", info.count_total);
        assert!(decided > 10_000, "{decided}");
    }
}

/// Goal: a gate whose worker is stuck does not hold up the others. Method: its first has waited longer than
/// is worth it, and the gate is not asked.
#[test]
fn a_stuck_gate_holds_nobody_up_for_long() {
    let plan = plan(1, Decide::Reservation, 1, [0; 4]);
    let common = Arc::new(Common::new(2));
    let mut gates: Vec<SentryGate<u64>> = (0..2)
        .map(|index| SentryGate::new(common.clone(), index, &Policy::single(Duration::from_secs(1)), &plan))
        .collect();
    let at = Instant::from_millis;
    let gold = SentryRequest::default();
    let Arrived::Admit(_, running) = gates[0].arrive(at(0), gold, 1) else { panic!("there is room") };
    assert!(matches!(gates[1].arrive(at(10), gold, 2), Arrived::Held(_)));
    assert!(matches!(gates[0].arrive(at(100), gold, 3), Arrived::Held(_)));
    gates[0].end(at(150), running, Ending::default());
    assert_eq!((gates[0].next(at(150)), gates[0].who_waits()), (None, Some(1)), "the older one's turn");
    // The other should have refused it at 210 ms.
    assert!(matches!(gates[0].next(at(280)), Some(Released::Admit(3, _))));
    assert!(
        matches!(gates[1].next(at(280)), Some(Released::Shed(2, shed)) if shed.reason == Reason::Deadline)
    );
}

/// Goal: any class number belongs to some class, and time may stand still or be at its end.
#[test]
fn every_class_number_and_every_moment_is_fit() {
    let plan = plan(1, Decide::Reservation, 2, [0, 0, 0, 1]);
    let policy = Policy::single(Duration::from_secs(1));
    for now in [Instant::ZERO, Instant::from_secs(1), Instant::MAX] {
        let mut gate: SentryGate<u8> = SentryGate::new(Arc::new(Common::new(1)), 0, &policy, &plan);
        for class in 0..=u8::MAX {
            let asked = SentryRequest {
                class,
                url_class: u32::MAX,
                client_key: u64::MAX,
                ..SentryRequest::default()
            };
            if let Arrived::Admit(_, permit) = gate.arrive(now, asked, class) {
                gate.end(
                    now,
                    permit,
                    Ending { completed: true, measured_us: Some(u32::MAX), ..Ending::default() },
                );
            }
            while gate.next(now).is_some() {}
        }
        let sample = gate.drain(now);
        assert_eq!((sample.offered, sample.classes[3].offered), (256, 253));
    }
}
