//! Goal: in every order in which workers access what they share, no slot is given twice or lost, no request
//! waits while there is a free slot, and a planner at rest is woken by the first request that is in no
//! sample. Method: loom runs the very sources of the sentry's gates and of the gateway's count, with its
//! atomics, through the interleavings of two and three threads with at most [`PREEMPTIONS_MAX`] preemptions
//! each.
//!
//! Not under libtest: the sources' own unit tests are compiled with them and cannot run under loom.

extern crate alloc;

#[expect(unreachable_pub, reason = "it is public in its crate")]
#[path = "../../src/pipeline/gateway_count.rs"]
mod gateway_count;
#[expect(dead_code, unreachable_pub, reason = "the models need a part of it")]
#[path = "../../src/limit_plan.rs"]
mod limit_plan;
#[expect(dead_code, unreachable_pub, reason = "the models need a part of it")]
#[path = "../../src/rest_flag.rs"]
mod rest_flag;
#[expect(dead_code, unused_imports, unreachable_pub, reason = "the models need a part of it")]
#[path = "../../src/sentry/mod.rs"]
mod sentry;
#[expect(dead_code, reason = "each source needs a part of it")]
mod sync;

use flashweir_admission::{Binding, Flow, Planner, Sample};
use flashweir_core::{Duration, Instant};
use gateway_count::GatewayCount;
use loom::thread;
use rest_flag::RestFlag;
use sentry::{
    Arrived, Common, Ending, Permit, Plan, Policy, Released, SentryGate, SentryPlanner, SentryRequest,
};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const NOW: Instant = Instant::from_secs(1_000);
/// Most errors between threads show with two (Musuvathi and Qadeer 2007).
const PREEMPTIONS_MAX: usize = 3;

fn main() {
    let models: [(&str, fn()); 5] = [
        ("no slot beyond the limit, and none lost", slots_stay_below_the_limit),
        ("a wake-up is not lost between an end and an arrival", an_end_meets_an_arrival),
        ("a wake-up is not lost between an end, an arrival and another plan", an_end_meets_a_plan),
        ("the count of the gateway stays below its bound", the_gateway_stays_below_its_bound),
        ("a planner at rest is woken by what is in no sample", a_request_wakes_a_planner_at_rest),
    ];
    for (name, model) in models {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(PREEMPTIONS_MAX);
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = runs.clone();
        builder.check(move || {
            counted.fetch_add(1, Relaxed);
            model();
        });
        println!("model: {name} ... ok, {} interleavings", runs.load(Relaxed));
    }
}

/// Gates of one service with one class and this limit; one request may wait.
fn gates<const COUNT: usize>(limit: u32) -> (Arc<Common>, [SentryGate<u32>; COUNT]) {
    let policy = Policy::single(Duration::from_secs(1));
    let plan = plan(&policy, 1, limit);
    let common = Arc::new(Common::new(COUNT));
    let gates = core::array::from_fn(|index| SentryGate::new(common.clone(), index, &policy, &plan));
    (common, gates)
}

fn plan(policy: &Policy, epoch: u64, limit: u32) -> Plan {
    let mut plan = SentryPlanner::new(Arc::new(policy.clone())).current().clone();
    (plan.epoch, plan.limit, plan.classes[0].limit, plan.classes[0].hold_len) = (epoch, limit, limit, 1);
    plan
}

/// State of one worker after a request arrived at it.
fn arrive(gate: &mut SentryGate<u32>) -> Option<Permit> {
    match gate.arrive(NOW, SentryRequest::default(), 1) {
        Arrived::Admit(_, permit) => Some(permit),
        Arrived::Held(_) | Arrived::HeldInsteadOf(..) | Arrived::Shed(..) => None,
    }
}

/// As a shell does after an end: those who wait here, then the gate to be woken.
fn settle(gate: &mut SentryGate<u32>) -> (Vec<Permit>, Option<usize>) {
    let mut permits = Vec::new();
    while let Some(Released::Admit(_, permit)) = gate.next(NOW) {
        permits.push(permit);
    }
    (permits, gate.who_waits())
}

fn slots_stay_below_the_limit() {
    let (common, gates) = gates::<2>(1);
    let workers = gates.map(|mut gate| {
        thread::spawn(move || {
            let permit = arrive(&mut gate)?;
            assert_eq!(gate.in_flight(), 1);
            gate.end(NOW, permit, Ending::WITHDRAWN);
            Some(())
        })
    });
    let admitted = workers.map(|worker| worker.join().expect("no panic")).into_iter().flatten().count();
    assert!(admitted > 0);
    assert_eq!(common.in_flight(), 0);
}

/// The one slot is given back at a gate while a request comes to wait at the other: one of the two sees it.
fn an_end_meets_an_arrival() {
    let (common, [mut one, mut other]) = gates::<2>(1);
    let permit = arrive(&mut one).expect("a free slot");
    let ends = thread::spawn(move || {
        one.end(NOW, permit, Ending::WITHDRAWN);
        settle(&mut one).1
    });
    let admitted = arrive(&mut other).is_some();
    let woken = ends.join().expect("no panic");
    assert!(admitted || woken == Some(1), "a request waits and no gate is woken");
    let released = !admitted && !settle(&mut other).0.is_empty();
    assert!(admitted || released);
    assert_eq!((common.in_flight(), common.held(0)), (1, 0));
}

/// There are two slots from now on, which one gate knows and the other does not yet; an end and an arrival
/// meet meanwhile.
fn an_end_meets_a_plan() {
    let (common, [mut one, mut other]) = gates::<2>(1);
    let more = plan(&Policy::single(Duration::from_secs(1)), 2, 2);
    let permit = arrive(&mut one).expect("a free slot");
    let later = more.clone();
    let ends = thread::spawn(move || {
        one.apply(&more);
        let by_plan = settle(&mut one).1;
        one.end(NOW, permit, Ending::WITHDRAWN);
        (by_plan, settle(&mut one).1)
    });
    let admitted = arrive(&mut other).is_some();
    let (by_plan, by_end) = ends.join().expect("no panic");
    assert!(admitted || by_plan == Some(1) || by_end == Some(1), "a request waits and no gate is woken");
    other.apply(&later);
    let released = !admitted && !settle(&mut other).0.is_empty();
    assert!(admitted || released);
    assert_eq!((common.in_flight(), common.held(0)), (1, 0));
}

fn the_gateway_stays_below_its_bound() {
    let count = Arc::new(GatewayCount::default());
    let workers = [(); 2].map(|()| {
        let count = count.clone();
        thread::spawn(move || {
            if count.take(1) {
                assert_eq!(count.get(), 1);
                count.give_back();
            }
        })
    });
    workers.into_iter().for_each(|worker| worker.join().expect("no panic"));
    assert_eq!(count.get(), 0);
}

/// The planner goes to rest, and then asks both workers for their samples, while two requests come to each.
fn a_request_wakes_a_planner_at_rest() {
    let flag = Arc::new(RestFlag::default());
    let asked = Arc::new([sync::AtomicBool::default(), sync::AtomicBool::default()]);
    let workers = [0, 1].map(|worker: usize| {
        let (flag, asked) = (flag.clone(), asked.clone());
        thread::spawn(move || {
            let mut has_woken = flag.wakes();
            // The bell orders memory as these do.
            let is_told = asked[worker].load(Acquire);
            has_woken |= flag.wakes();
            // The second request came after the sample, which does not contain it.
            (is_told, has_woken)
        })
    });
    flag.begin();
    asked.iter().for_each(|asked| asked.store(true, Release));
    let [one, other] = workers.map(|worker| worker.join().expect("no panic"));
    let is_needed = one.0 || other.0;
    assert!(!is_needed || one.1 || other.1, "a request that is in no sample, and the planner rests");
}
