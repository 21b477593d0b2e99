//! Decisions without effect: every request is let in, and those that would not have been are counted.
//!
//! No request waits in shadow, so those that would have waited are at the origin: as many as are in flight
//! above a class's limit stand for its queue, and a request that finds that full would have been refused. The
//! limit itself cannot be tested in shadow (moving it moves nothing); it is what quiet times tell. O(1).

use super::SentryGate;
use super::answer::Slot;
use super::arriving::ArrivingRequest;
use crate::sentry::in_flight::Permit;
use crate::sentry::plan::{ClassPlan, Decide};
use crate::sentry::request::SentryRequest;
use flashweir_core::{Instant, Reason, Shed};

impl<T> SentryGate<T> {
    /// A request arrives, is let in, and no other stage has a say:
    /// [`observe_offered`](Self::observe_offered), [`check_in_shadow`](Self::check_in_shadow) and
    /// [`commit`](Self::commit).
    pub fn arrive_in_shadow(&mut self, now: Instant, request: SentryRequest) -> (Permit, Option<Shed>) {
        self.observe_offered(request, false);
        let (slot, shed) = self.check_in_shadow(now, request);
        (self.commit(now, now, request, slot), shed)
    }

    /// A slot for a request, beyond the limit if need be; with it comes the refusal that the request would
    /// have got, if so. To be committed or cancelled as one that was [checked](Self::check).
    pub fn check_in_shadow(&mut self, now: Instant, request: SentryRequest) -> (Slot, Option<Shed>) {
        let ArrivingRequest { request, class, .. } = self.arriving(request);
        let is_guaranteed = self.common.is_within_guarantee(now, request.class, &class);
        if self.take_long(now, &request) {
            return (Slot { is_guaranteed, is_long: true }, None);
        }
        let refused = self.would_refuse(&class).filter(|_| !is_guaranteed);
        let shed = refused.map(|reason| Shed { reason, retry_after: class.retry_after });
        (self.take_beyond_limit(now, is_guaranteed), shed)
    }

    /// A slot, even beyond the limit.
    fn take_beyond_limit(&mut self, now: Instant, is_guaranteed: bool) -> Slot {
        // There is no limit of that size, so there is a place.
        let _always = self.take(now, u32::MAX);
        Slot { is_guaranteed, is_long: false }
    }

    /// Reason why a request of a class with this plan would be refused now.
    fn would_refuse(&self, class: &ClassPlan) -> Option<Reason> {
        let in_flight = self.common.in_flight();
        let places_to_wait = match self.plan.decide {
            Decide::Threshold if class.admit_share == 0 => return Some(Reason::Threshold),
            Decide::Threshold => 0,
            Decide::Reservation | Decide::Batch(_) => class.hold_len,
        };
        if in_flight < class.limit.saturating_add(places_to_wait) {
            None
        } else if in_flight < self.plan.limit {
            Some(Reason::Reserved)
        } else {
            Some(Reason::Capacity)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentry::{Common, Ending, Policy, SentryPlanner};
    use alloc::sync::Arc;
    use alloc::vec::Vec;
    use flashweir_core::Duration;

    #[test]
    fn everybody_is_let_in_and_those_beyond_limit_and_queue_are_told() {
        let policy = Policy::single(Duration::from_secs(1));
        let mut plan = SentryPlanner::new(Arc::new(policy.clone())).current().clone();
        (plan.limit, plan.classes[0].limit, plan.classes[0].hold_len) = (2, 2, 3);
        let mut gate = SentryGate::<()>::new(Arc::new(Common::new(1)), 0, &policy, &plan);
        let now = Instant::from_secs(1);
        let arrived: Vec<_> = (0..7).map(|_| gate.arrive_in_shadow(now, SentryRequest::default())).collect();
        let refused: Vec<_> = arrived.iter().map(|(_, shed)| shed.map(|shed| shed.reason)).collect();
        let full = Some(Reason::Capacity);
        assert_eq!(refused, [None, None, None, None, None, full, full]);
        assert_eq!(gate.in_flight(), 7);
        for (permit, _) in arrived {
            gate.end(now, permit, Ending { completed: true, ..Ending::default() });
        }
        let sample = gate.drain(now);
        assert_eq!((sample.offered, sample.admitted, sample.shed, sample.completed), (7, 7, 0, 7));
        assert_eq!(gate.in_flight(), 0);
    }
}
