//! Properties of a candidate's gate: with the live policy's own plan it decides as the live gate does, to the
//! last request; no request is lost; and one that never ran keeps its virtual place as long as documented.

use super::super::{ClassPolicy, Costs, Position, SentryPlanner};
use super::*;
use alloc::collections::BTreeMap;
use flashweir_core::Rate;
use flashweir_core::limits::URL_CLASSES;
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);

/// Plan with gold before the rest: room for `limit` in flight, two more for gold, and `hold_len` of each
/// class queued.
fn plan(limit: u32, hold_len: u32) -> (Policy, Plan) {
    let class = |revenue| ClassPolicy { revenue, ..ClassPolicy::default() };
    let policy = Policy { classes: vec![class(10.0), class(1.0)], ..Policy::single(SECOND) };
    let mut plan = SentryPlanner::new(Arc::new(policy.clone())).current().clone();
    for (index, class) in plan.classes.iter_mut().enumerate() {
        (class.limit, class.hold_len) = (limit + 2 - 2 * index as u32, hold_len);
        class.hold_for = Duration::from_millis(200);
        class.newest_first_after = Duration::from_millis(100);
    }
    (policy, Plan { limit, knee_milli: 2_000, ..costing(plan, 4_000) })
}

/// With so much that is known of what a request takes.
fn costing(plan: Plan, us: u32) -> Plan {
    let costs = Costs { by_url_class_us: vec![us; URL_CLASSES], by_class_us: vec![us; 2], usual_us: us };
    Plan { costs: Arc::new(costs), ..plan }
}

fn candidate(policy: &Policy, plan: &Plan) -> CandidateGate {
    CandidateGate::new(Arc::new(Common::new(1)), 0, policy, plan)
}

fn ask(class: u8) -> SentryRequest {
    SentryRequest { class, ..SentryRequest::default() }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(10_000 + millis)
}

/// Regression: the live policy's times were taken as they are, and a candidate with more places seemed to get
/// more from the same origin.
#[test]
fn times_are_those_with_the_candidates_number_in_flight() {
    let (policy, plan) = plan(4, 0);
    let mut candidate = candidate(&policy, &plan);
    let arrive = |candidate: &mut CandidateGate| candidate.arrive(at(0), ask(0)).expect("few are compared");
    for _ in 0..3 {
        let key = arrive(&mut candidate);
        candidate.live_holds(at(0), key);
    }
    // The fourth here, twice the knee; the only one of the live policy, alone.
    let key = arrive(&mut candidate);
    candidate.live_let_in(at(0), key);
    candidate.live_ended(at(100), key, true);
    assert_eq!(candidate.in_flight(), 1, "the other three are over as estimated");
    candidate.look(at(199));
    assert_eq!(candidate.in_flight(), 1);
    candidate.look(at(200));
    assert_eq!(candidate.in_flight(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Arrive(u8, u64),
    End(usize, bool),
    Leave(usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u8..3, 0u64..4).prop_map(|(class, client)| Step::Arrive(class, client)),
        4 => (0usize..100, any::<bool>()).prop_map(|(which, completed)| Step::End(which, completed)),
        1 => (0usize..100).prop_map(Step::Leave),
        2 => (0u64..150).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..200)
}

/// A live gate with a candidate beside it that gets every event, as in a shell.
struct Both {
    live: SentryGate<usize>,
    candidate: CandidateGate,
    in_flight: Vec<(usize, Permit)>,
    held: BTreeMap<usize, Ticket>,
    now: Instant,
    offered: u64,
}

impl Both {
    fn new(policy: &Policy, live: &Plan, candidate_plan: &Plan) -> Self {
        Self {
            live: SentryGate::new(Arc::new(Common::new(1)), 0, policy, live),
            candidate: candidate(policy, candidate_plan),
            in_flight: Vec::new(),
            held: BTreeMap::new(),
            now: at(0),
            offered: 0,
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Arrive(class, client_key) => {
                self.arrive(SentryRequest { class, client_key, ..SentryRequest::default() })
            }
            Step::End(which, completed) if !self.in_flight.is_empty() => {
                let (key, permit) = self.in_flight.remove(which % self.in_flight.len());
                self.live.end(self.now, permit, Ending { completed, ..Ending::default() });
                self.candidate.live_ended(self.now, key, completed);
            }
            Step::Leave(which) if !self.held.is_empty() => {
                let (&key, &ticket) = self.held.iter().nth(which % self.held.len()).expect("one waits");
                self.held.remove(&key);
                self.live.leave(self.now, ticket);
                self.candidate.live_left(self.now, key);
            }
            Step::Wait(millis) => self.now += Duration::from_millis(millis),
            Step::End(..) | Step::Leave(_) => {}
        }
        self.release();
    }

    fn arrive(&mut self, asked: SentryRequest) {
        self.offered += 1;
        let key = self.candidate.arrive(self.now, asked).expect("few are compared");
        match self.live.arrive(self.now, asked, key) {
            Arrived::Admit(_, permit) => self.let_in(key, permit),
            Arrived::Held(ticket) => self.hold(key, ticket),
            Arrived::HeldInsteadOf(ticket, other, _) => {
                self.held.remove(&other);
                self.candidate.live_refused(self.now, other);
                self.hold(key, ticket);
            }
            Arrived::Shed(..) => self.candidate.live_refused(self.now, key),
        }
    }

    fn release(&mut self) {
        self.candidate.look(self.now);
        while let Some(released) = self.live.next(self.now) {
            match released {
                Released::Admit(key, permit) => self.let_in(key, permit),
                Released::Shed(key, _) => self.candidate.live_refused(self.now, key),
            }
            let (Released::Admit(key, _) | Released::Shed(key, _)) = released;
            self.held.remove(&key);
        }
    }

    fn let_in(&mut self, key: usize, permit: Permit) {
        self.in_flight.push((key, permit));
        self.candidate.live_let_in(self.now, key);
    }

    fn hold(&mut self, key: usize, ticket: Ticket) {
        self.held.insert(key, ticket);
        self.candidate.live_holds(self.now, key);
    }

    /// Everything comes to its end, and time passes until every estimate is over.
    fn finish(&mut self) -> (Sample, Vec<Compared>) {
        while !self.in_flight.is_empty() || !self.held.is_empty() {
            self.take(&Step::End(0, true));
            self.take(&Step::Wait(50));
        }
        // Places come free one after the other, each for an estimate.
        for _ in 0..10 {
            self.take(&Step::Wait(500));
        }
        self.candidate.drain(self.now)
    }
}

proptest! {
    /// A candidate that is the live policy lets in whom that lets in, makes wait whom that makes wait, and
    /// refuses whom that refuses.
    #[test]
    fn with_the_live_plan_it_decides_as_the_live_gate(
        steps in steps(), limit in 1u32..8, hold_len in 0u32..6, guaranteed in 0u64..3,
    ) {
        let (policy, mut plan) = plan(limit, hold_len);
        plan.classes[1].guaranteed_rate = Rate::from_milli(guaranteed * 1_000);
        let mut both = Both::new(&policy, &plan, &plan);
        for step in &steps {
            both.take(step);
            prop_assert!(both.in_flight.iter().all(|(key, _)| both.candidate.decision(*key) == VirtualDecision::Admit));
            prop_assert!(both.held.keys().all(|key| both.candidate.decision(*key) == VirtualDecision::Hold));
            prop_assert_eq!(both.candidate.in_flight(), both.live.in_flight());
        }
        let live = both.live.drain(both.now);
        let (sample, compared) = both.candidate.drain(both.now);
        for ((live, candidate), compared) in live.classes.iter().zip(&sample.classes).zip(&compared) {
            prop_assert_eq!((compared.only_live, compared.only_candidate), (0, 0));
            prop_assert_eq!(
                (live.offered, live.admitted, live.shed, live.left, live.completed, live.good),
                (candidate.offered, candidate.admitted, candidate.shed, candidate.left, candidate.completed, candidate.good)
            );
            prop_assert_eq!(compared.live_good, candidate.good);
        }
    }

    /// Under any two plans both decide on every request, and no virtual place is kept for ever.
    #[test]
    fn nobody_is_lost_between_two_plans(
        steps in steps(), limits in (1u32..8, 1u32..8), hold_lens in (0u32..6, 0u32..6),
    ) {
        let ((policy, live), (_, other)) = (plan(limits.0, hold_lens.0), plan(limits.1, hold_lens.1));
        let mut both = Both::new(&policy, &live, &other);
        steps.iter().for_each(|step| both.take(step));
        let (sample, compared) = both.finish();
        prop_assert_eq!((both.candidate.compared_now(), both.candidate.in_flight()), (0, 0));
        let judged = |c: &Compared| c.both + c.only_live + c.only_candidate + c.neither;
        prop_assert_eq!(compared.iter().map(judged).sum::<u64>(), both.offered);
        for (counts, compared) in sample.classes.iter().zip(&compared) {
            prop_assert_eq!(counts.offered, counts.admitted + counts.shed + counts.left);
            prop_assert_eq!(counts.admitted, compared.both + compared.only_candidate);
            prop_assert_eq!(counts.shed, compared.shed.iter().sum::<u64>());
        }
    }
}

#[test]
fn what_never_ran_keeps_its_place_for_its_cost_shared_as_the_origin_would_be() {
    let (policy, plan) = plan(4, 0);
    let mut gate = candidate(&policy, &costing(plan, 10_000));
    for _ in 0..4 {
        let key = gate.arrive(at(0), ask(1)).expect("room to compare");
        gate.live_refused(at(0), key);
    }
    // Two are served at once: the third and fourth have company, and take one and a half times and twice as
    // long.
    let in_flight = [9, 10, 14, 15, 19, 20].map(|millis| {
        gate.look(at(millis));
        gate.in_flight()
    });
    assert_eq!(in_flight, [4, 2, 2, 1, 1, 0]);
    let (sample, compared) = gate.drain(at(30));
    assert_eq!((sample.classes[1].completed, sample.classes[1].good), (4, 4));
    assert_eq!((compared[1].only_candidate, compared[1].live_good), (4, 0));
}

#[test]
fn where_nothing_is_known_of_costs_it_is_taken_to_last_for_the_whole_target() {
    let (policy, plan) = plan(4, 0);
    let mut gate = candidate(&policy, &costing(plan, 0));
    let key = gate.arrive(at(0), ask(0)).expect("room to compare");
    gate.live_refused(at(0), key);
    gate.look(at(999));
    assert_eq!(gate.in_flight(), 1);
    gate.look(at(1_000));
    assert_eq!((gate.in_flight(), gate.compared_now()), (0, 0));
}

#[test]
fn one_that_both_let_in_lasts_as_long_as_it_really_did() {
    let (policy, plan) = plan(2, 4);
    let mut gate = candidate(&policy, &costing(plan, 30_000));
    // The first is refused by the live policy and takes 30 ms, alone. The second and third find no room
    // meanwhile.
    let keys = [0, 0, 0].map(|class| gate.arrive(at(0), ask(class + 1)).expect("room to compare"));
    gate.live_refused(at(0), keys[0]);
    gate.live_let_in(at(0), keys[1]);
    gate.live_let_in(at(0), keys[2]);
    assert_eq!(keys.map(|key| gate.decision(key))[1..], [VirtualDecision::Admit, VirtualDecision::Hold]);
    // The live policy's third is over before the candidate has begun with it: it takes 12 ms from then on.
    gate.live_ended(at(12), keys[2], true);
    gate.look(at(30));
    assert_eq!(gate.in_flight(), 2, "the second, and the third in the place of the first");
    gate.look(at(41));
    assert_eq!(gate.in_flight(), 2);
    gate.look(at(42));
    assert_eq!(gate.in_flight(), 1);
    gate.live_ended(at(500), keys[1], false);
    let (sample, compared) = gate.drain(at(600));
    assert_eq!((gate.in_flight(), gate.compared_now()), (0, 0));
    let counts = sample.classes[1];
    assert_eq!((counts.admitted, counts.completed, counts.good), (3, 2, 2), "the second failed");
    assert_eq!((compared[1].both, compared[1].only_candidate, compared[1].held), (2, 1, 1));
}

#[test]
fn so_many_are_compared_and_no_more() {
    let (policy, mut plan) = plan(1, 0);
    plan.classes[1].limit = u32::MAX;
    let mut gate = candidate(&policy, &plan);
    let keys: Vec<Option<usize>> = (0..=CANDIDATE_REQUESTS).map(|_| gate.arrive(at(0), ask(1))).collect();
    assert_eq!(keys.iter().position(Option::is_none), Some(CANDIDATE_REQUESTS));
    gate.live_refused(at(0), keys[0].expect("the first"));
    gate.look(at(120_000));
    assert!(gate.arrive(at(120_000), ask(1)).is_some(), "one is over");
}

#[test]
fn comparing_allocates_nothing() {
    let (policy, plan) = plan(12, 30);
    let mut gate = candidate(&policy, &plan);
    let mut running = [None; 16];
    let (mut arrived, mut decided) = (0, 0);
    let mut run = |count| {
        for n in arrived..arrived + count {
            let now = at(0) + Duration::from_micros(200) * n;
            let asked = SentryRequest {
                class: (n % 3) as u8,
                url_class: n,
                client_key: n.into(),
                position: Position::ALL[n as usize % 3],
                is_uncounted: false,
            };
            let key = gate.arrive(now, asked).expect("few are compared");
            match n % 5 {
                0 => gate.live_refused(now, key),
                1 => {
                    gate.live_holds(now, key);
                    gate.live_left(now, key);
                }
                _ => {
                    gate.live_let_in(now, key);
                    let before = running[n as usize % running.len()].replace(key);
                    before.into_iter().for_each(|key| gate.live_ended(now, key, true));
                }
            }
            decided += 1;
        }
        arrived += count;
    };
    run(20_000);
    let info = allocation_counter::measure(|| run(20_000));
    assert_eq!((info.count_total, decided), (0, 40_000));
}
