//! Requests whose client is waited for: their places go to others meanwhile.
//!
//! The limit is on what the origin does at once. While a client owes it the rest of a request's body the
//! origin can do nothing, and a few clients that send slowly would fill a limit for which no server works. So
//! such a request gives its place back, and takes one again without asking when the client has sent
//! something: it was admitted once, and its body cannot be refused half-way. The count may then pass the
//! limit for a moment; no other request is let in until it has fallen again.
//!
//! Latency, age, service time and the integral of requests in flight all leave the time in between out, so
//! that they still agree with each other (Little's law), and so does the time that is held against the
//! target: that is the service's, not the client's. One that never comes back is neither completed nor
//! failed. O(1).

use super::SentryGate;
use crate::sentry::in_flight::{Paused, Permit};
use flashweir_core::Instant;

impl<T> SentryGate<T> {
    /// Pauses an admitted request until its client sends something. To be followed by what follows
    /// [`end`](Self::end). A request that is not resumed is dropped.
    pub fn pause(&mut self, now: Instant, permit: Permit) -> Paused {
        self.in_flight.pause(now, &self.plan, permit)
    }

    /// The client has sent something: the request goes on.
    pub fn resume(&mut self, now: Instant, paused: Paused) -> Permit {
        // There is no limit of that size, so there is a place.
        let _always = match paused.is_long() {
            true => self.in_flight.take_long(now, &self.plan, u32::MAX),
            false => self.take(now, u32::MAX),
        };
        self.in_flight.resume(now, paused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentry::{Arrived, Common, Ending, Policy, Sample, SentryPlanner, SentryRequest};
    use alloc::sync::Arc;
    use alloc::vec::Vec;
    use flashweir_core::Duration;
    use proptest::prelude::*;

    const COMPLETED: Ending = Ending { completed: true, withdrawn: false, measured_us: None };

    /// Gates of one service, `count` of them, with this limit and no queue.
    fn gates(count: usize, limit: u32) -> Vec<SentryGate<()>> {
        let policy = Policy::single(Duration::from_secs(1));
        let mut plan = SentryPlanner::new(Arc::new(policy.clone())).current().clone();
        (plan.limit, plan.classes[0].limit, plan.classes[0].hold_len) = (limit, limit, 0);
        let common = Arc::new(Common::new(count));
        (0..count).map(|index| SentryGate::new(common.clone(), index, &policy, &plan)).collect()
    }

    fn arrive(gate: &mut SentryGate<()>, now: Instant) -> Option<Permit> {
        match gate.arrive(now, SentryRequest::default(), ()) {
            Arrived::Admit((), permit) => Some(permit),
            _ => None,
        }
    }

    #[test]
    fn the_place_is_free_meanwhile_and_taken_again_beyond_the_limit() {
        let (mut gates, at) = (gates(1, 1), Instant::from_millis);
        let gate = &mut gates[0];
        let slow = arrive(gate, at(100)).expect("room");
        assert_eq!(arrive(gate, at(100)), None);
        let slow = gate.pause(at(200), slow);
        let quick = arrive(gate, at(200)).expect("the slow one's place");
        let slow = gate.resume(at(300), slow);
        assert_eq!(gate.in_flight(), 2);
        gate.end(at(300), quick, COMPLETED);
        assert_eq!(arrive(gate, at(300)), None, "still as many as the limit");
        gate.end(at(300), slow, COMPLETED);
        assert!(arrive(gate, at(300)).is_some());
    }

    #[test]
    fn what_is_measured_leaves_the_pause_out() {
        let (mut gates, at) = (gates(1, 8), Instant::from_millis);
        let gate = &mut gates[0];
        let permit = arrive(gate, at(0)).expect("room");
        let paused = gate.pause(at(100), permit);
        // Longer than the target, and long enough that ages would be off their scale.
        let permit = gate.resume(at(60_100), paused);
        let ages = gate.drain(at(60_140)).age_us;
        let age_us = ages.quantile(0.5).expect("one in flight");
        assert!(age_us.abs_diff(140_000) < 5_000, "without the pause: {ages:?}");
        gate.end(at(60_150), permit, COMPLETED);
        let sample = gate.drain(at(60_200));
        assert_eq!((sample.completed, sample.classes[0].good, sample.in_flight), (1, 1, 0));
        let latency_us = sample.latency_us.quantile(0.5).expect("one response");
        assert!(latency_us.abs_diff(150_000) < 5_000, "{latency_us}");
        assert_eq!(sample.urls[0].latency_us, 150_000);
        assert_eq!(sample.urls[0].shared_us, 150_000);
        assert_eq!(sample.age_us.count(), 0);
    }

    #[test]
    fn the_integral_leaves_the_pause_out_and_who_never_comes_back_did_not_fail() {
        let (mut gates, at) = (gates(1, 8), Instant::from_millis);
        let gate = &mut gates[0];
        let _before = gate.drain(at(0));
        let stays = arrive(gate, at(0)).expect("room");
        let leaves = arrive(gate, at(0)).expect("room");
        let paused = gate.pause(at(100), stays);
        let _never_resumed = gate.pause(at(100), leaves);
        let stays = gate.resume(at(500), paused);
        gate.end(at(600), stays, COMPLETED);
        let sample = gate.drain(at(600));
        assert_eq!(sample.in_flight_nanos, 300_000_000);
        assert_eq!((sample.admitted, sample.completed, sample.failed), (2, 1, 0));
        assert_eq!(sample.in_flight, 0);
    }

    /// Step of one request at one gate.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Arrive,
        End(bool),
        Pause,
        Resume,
        NeverComeBack,
        Drain,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => Just(Step::Arrive),
            2 => any::<bool>().prop_map(Step::End),
            2 => Just(Step::Pause),
            2 => Just(Step::Resume),
            1 => Just(Step::NeverComeBack),
            1 => Just(Step::Drain),
        ]
    }

    /// Expected state of one gate, kept without it.
    #[derive(Default)]
    struct Model {
        present: Vec<Permit>,
        paused: Vec<Paused>,
        never_back: u64,
        all: Sample,
    }

    impl Model {
        fn apply(&mut self, gate: &mut SentryGate<()>, now: Instant, step: Step, pick: usize) {
            match step {
                Step::Arrive => self.present.extend(arrive(gate, now)),
                Step::End(completed) => {
                    if let Some(permit) = take_any(&mut self.present, pick) {
                        gate.end(now, permit, Ending { completed, ..Ending::default() });
                    }
                }
                Step::Pause => {
                    self.paused.extend(take_any(&mut self.present, pick).map(|one| gate.pause(now, one)));
                }
                Step::Resume => {
                    self.present.extend(take_any(&mut self.paused, pick).map(|one| gate.resume(now, one)));
                }
                Step::NeverComeBack => {
                    self.never_back += take_any(&mut self.paused, pick).is_some() as u64;
                }
                Step::Drain => self.all.merge(&gate.drain(now)),
            }
        }
    }

    fn take_any<V>(all: &mut Vec<V>, pick: usize) -> Option<V> {
        let place = pick.checked_rem(all.len())?;
        Some(all.swap_remove(place))
    }

    proptest! {
        /// For any arrivals, ends, pauses and resumptions at two gates, the common count is that of the
        /// present, it ends at zero, and the samples add up to what happened.
        #[test]
        fn nobody_is_counted_twice_or_lost(
            steps in proptest::collection::vec((0usize..2, step(), any::<usize>(), 0u64..50), 0..120),
        ) {
            let mut gates = gates(2, 5);
            let mut models = [Model::default(), Model::default()];
            let mut now = Instant::from_millis(1);
            for (which, step, pick, later_ms) in steps {
                now += Duration::from_millis(later_ms);
                models[which].apply(&mut gates[which], now, step, pick);
                let present: usize = models.iter().map(|model| model.present.len()).sum();
                prop_assert_eq!(gates[0].in_flight() as usize, present);
            }
            for (gate, model) in gates.iter_mut().zip(&mut models) {
                while !model.present.is_empty() {
                    model.apply(gate, now, Step::End(true), 0);
                }
                model.apply(gate, now, Step::Drain, 0);
                let (all, paused) = (&model.all, model.paused.len() as u64 + model.never_back);
                prop_assert_eq!(all.admitted, all.completed + all.failed + paused);
                prop_assert_eq!(gate.drain(now).age_us.count(), 0);
            }
            prop_assert_eq!(gates[0].in_flight(), 0);
        }
    }
}
