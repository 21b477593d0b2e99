//! Request that arrives, with what the plan in force says of it.

use super::SentryGate;
use crate::sentry::hold::queue_of;
use crate::sentry::plan::{ClassPlan, Decide};
use crate::sentry::request::{Position, SentryRequest};

/// A request that arrives, with the plan of its class and its estimated cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivingRequest {
    pub(super) request: SentryRequest,
    pub(super) class: ClassPlan,
    pub(super) cost_us: u32,
}

impl ArrivingRequest {
    /// Queue in which it would wait.
    pub(super) fn queue(&self) -> usize {
        queue_of(self.request.class.into(), self.request.position)
    }

    /// Returns true if its client has more than its share.
    pub(super) fn is_over_share(&self) -> bool {
        self.request.position == Position::OverShare
    }
}

impl<T> SentryGate<T> {
    /// Looks up a request's class plan and cost.
    pub(super) fn arriving(&self, request: SentryRequest) -> ArrivingRequest {
        let class_index = usize::from(request.class).min(self.plan.classes.len() - 1);
        // Rounds have one queue for a class.
        let has_rounds = matches!(self.plan.decide, Decide::Batch(_));
        let position = if has_rounds { Position::Usual } else { request.position };
        let request = SentryRequest { class: class_index as u8, position, ..request };
        let class = self.plan.classes[class_index];
        ArrivingRequest { request, class, cost_us: self.plan.costs.of(request.url_class, request.class) }
    }
}
