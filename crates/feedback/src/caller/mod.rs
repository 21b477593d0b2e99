//! The caller's half of overload control: what one sender knows of one node, and what it may send there.
//!
//! ```text
//!   request ─► Endpoint::arrive ─► send │ wait in a bounded queue │ refuse here
//!                  ▲   ▲   ▲
//!   feedback ──────┘   │   └────── quota of the standard fields, where the sender is to obey them
//!   (Flashweir-Overload)└───────── silence: no exchange with the node is answered
//! ```
//!
//! **What it decides.** For each request to one node: send now, wait, or refuse before any work was done
//! ([`Endpoint`]); whether a failed request may be tried again ([`RetryBudget`]); whether a request belongs
//! to work that has begun ([`RecentTraces`]).
//!
//! **The rule.** The tightest of three limits holds: what the node asked for ([`crate`]), what is left of a
//! quota, and the ramp after a silence. A node that answers no exchange gets one trial request at a time
//! ([`Silence`]).
//!
//! **Why not error counts.** A circuit breaker that counts errors learns of an overload when requests have
//! failed, opens for all classes at once, and sends everything again when it closes. Feedback says how much
//! to send, by class, before anything fails. What feedback cannot say is that the node is gone; for that, and
//! only for that, exchanges without an answer are counted.
//!
//! Pure: time and randomness are arguments. Both shells use it: the library `flashweir_tower::client` and the
//! sidecar `flashweir egress`. Sources: ALGORITHMS §5.2; Zhou et al., "Overload Control for Scaling WeChat
//! Microservices" (SoCC 2018), for work that has begun.

mod budget;
mod deadline;
mod endpoint;
mod offered;
mod priority;
mod quota;
mod report;
mod silence;
mod traces;

pub use budget::{BudgetSettings, RetryBudget};
pub use deadline::{
    DEADLINE, DEADLINE_MAX, DeadlineError, GRPC_TIMEOUT, deadline_text, grpc_timeout_text, parse_deadline,
    parse_grpc_timeout,
};
pub use endpoint::{Answer, Arrival, CallerRefusal, Endpoint, EndpointSettings, FeedbackError};
pub use offered::OfferedRate;
pub use priority::urgency;
pub use quota::{
    HOLD_MAX, HOLD_PART, Quota, parse_pushback_ms, parse_rate_limit, parse_seconds, quota_of, retry_after_of,
};
pub use report::{Condition, FeedbackCounts, FeedbackOutcome, Report};
pub use silence::{Silence, SilenceState};
pub use traces::{RecentTraces, trace_id};
