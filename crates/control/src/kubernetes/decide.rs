//! Writes to the API: replicas and conditions. No I/O.

use crate::kubernetes::policy::Condition;

/// Finding about a policy: the reason of its condition `Active`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Replicas are set by the policy.
    Active,
    /// It cannot be followed.
    Invalid(String),
    /// The gateways cannot be read, so replicas stay as they are.
    GatewaysSilent(String),
    /// The target cannot be read.
    TargetNotFound(String),
    /// An autoscaler owns the replicas: the policy only publishes how many it wants.
    AutoscalerOwns(String),
    /// Another policy of the same target is older.
    TargetTaken(String),
    /// Another policy of its pool cannot be planned, and with it the pool.
    PoolIncomplete(String),
    /// The API server did not take the order.
    OrderRefused(String),
    /// Demand is not known yet: it takes two readings.
    Measuring,
}

impl Finding {
    /// Its word in conditions and events.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Active => "ReplicasSet",
            Self::Invalid(_) => "InvalidPolicy",
            Self::GatewaysSilent(_) => "GatewaysSilent",
            Self::TargetNotFound(_) => "TargetNotFound",
            Self::AutoscalerOwns(_) => "AutoscalerOwnsReplicas",
            Self::TargetTaken(_) => "TargetTaken",
            Self::PoolIncomplete(_) => "PoolIncomplete",
            Self::OrderRefused(_) => "OrderRefused",
            Self::Measuring => "Measuring",
        }
    }

    /// A sentence for people.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Active => "replicas follow the demand that the gateways see".to_owned(),
            Self::Invalid(what) => what.clone(),
            Self::GatewaysSilent(why) => format!("{why}; replicas stay as they are"),
            Self::TargetNotFound(why) => format!("the scale of spec.scaleTargetRef cannot be read: {why}"),
            Self::AutoscalerOwns(name) => format!(
                "HorizontalPodAutoscaler {name} owns the replicas; the number that is wanted is in the status, in the metrics and for KEDA"
            ),
            Self::TargetTaken(name) => format!("OverloadPolicy {name} scales the same target"),
            Self::PoolIncomplete(name) => {
                format!("OverloadPolicy {name} of the same pool cannot be planned; replicas stay as they are")
            }
            Self::OrderRefused(why) => format!("{why}; the order is given again with the next plan"),
            Self::Measuring => "demand is known after the second reading of the gateways".to_owned(),
        }
    }

    /// Returns whether an operator has to act or to know.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        !matches!(self, Self::Active | Self::Measuring)
    }

    /// The conditions that say so, and whether its reason is new. `now` is written where the status changes,
    /// as Kubernetes wants it.
    #[must_use]
    pub fn conditions(&self, before: &[Condition], now: &str) -> (Vec<Condition>, bool) {
        let status = match self {
            Self::Active => "True",
            Self::Measuring => "Unknown",
            _ => "False",
        };
        let old = before.iter().find(|condition| condition.kind == ACTIVE);
        let since = old.filter(|old| old.status == status).map_or(now, |old| &old.last_transition_time);
        let is_new = old.is_none_or(|old| old.reason != self.reason());
        // The message of one reason may vary from plan to plan, and each write of a status costs the API
        // server one: the old message is kept.
        let message = old.filter(|_| !is_new).map_or_else(|| self.message(), |old| old.message.clone());
        let condition = Condition {
            kind: ACTIVE.to_owned(),
            status: status.to_owned(),
            reason: self.reason().to_owned(),
            message,
            last_transition_time: since.to_owned(),
        };
        (vec![condition], is_new)
    }
}

const ACTIVE: &str = "Active";

/// Order about a target's replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// They are as planned, or as another has set them since the plan.
    Keep,
    /// Set them to this number.
    Set(u32),
    /// Another has set them since the last order: said once, and left until the plan changes.
    ChangedElsewhere {
        /// Their present number.
        replicas: u32,
    },
}

/// The orders for one target. **The rule:** replicas are written when the *planned* number changes, so that
/// an operator's own `kubectl scale` holds until the demand says something else, and another controller that
/// writes as well is met by one write for each plan and never by a fight.
#[derive(Debug, Default)]
pub struct Orders {
    planned: Option<u32>,
    is_foreign_known: bool,
}

impl Orders {
    /// The order when `planned` are wanted and there are `replicas`.
    pub fn decide(&mut self, planned: u32, replicas: u32) -> Order {
        let is_new = self.planned.replace(planned) != Some(planned);
        if planned == replicas {
            self.is_foreign_known = false;
            return Order::Keep;
        }
        if is_new {
            self.is_foreign_known = false;
            return Order::Set(planned);
        }
        if core::mem::replace(&mut self.is_foreign_known, true) {
            return Order::Keep;
        }
        Order::ChangedElsewhere { replicas }
    }

    /// The order was not taken: it is given again.
    pub fn failed(&mut self) {
        self.planned = None;
    }
}

/// Servers to order: with demand and none planned, one. Without any server no time of a request is ever
/// measured, and a workload that was scaled to nothing would stay there.
#[must_use]
pub fn with_demand(planned: u32, offered: u64) -> u32 {
    if offered > 0 { planned.max(1) } else { planned }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_written_once_for_each_planned_number() {
        let mut orders = Orders::default();
        assert_eq!(orders.decide(2, 2), Order::Keep);
        assert_eq!(orders.decide(5, 2), Order::Set(5));
        assert_eq!(orders.decide(5, 5), Order::Keep);
        // An operator's own number holds, and is said once.
        assert_eq!(orders.decide(5, 9), Order::ChangedElsewhere { replicas: 9 });
        assert_eq!(orders.decide(5, 9), Order::Keep);
        assert_eq!(orders.decide(6, 9), Order::Set(6));
        orders.failed();
        assert_eq!(orders.decide(6, 9), Order::Set(6), "again after a failure");
    }

    #[test]
    fn a_workload_that_was_scaled_to_nothing_comes_back_with_demand() {
        assert_eq!((with_demand(0, 0), with_demand(0, 3), with_demand(4, 3)), (0, 1, 4));
    }

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let (measuring, is_new) = Finding::Measuring.conditions(&[], "1");
        assert!(is_new && measuring[0].status == "Unknown");
        let (active, is_new) = Finding::Active.conditions(&measuring, "2");
        assert!(is_new);
        assert_eq!((active[0].status.as_str(), active[0].last_transition_time.as_str()), ("True", "2"));
        assert_eq!(Finding::Active.conditions(&active, "3"), (active.clone(), false));
        let silent = |why: &str| Finding::GatewaysSilent(why.to_owned());
        let (first, _) = silent("10.0.0.1 timed out").conditions(&active, "4");
        let (second, is_new) = silent("10.0.0.2 timed out").conditions(&first, "5");
        assert!(!is_new && first == second, "not written again for another message");
        let (owned, is_new) = Finding::AutoscalerOwns("busy".to_owned()).conditions(&second, "6");
        assert!(is_new && owned[0].last_transition_time == "4", "the status is False as before");
    }
}
