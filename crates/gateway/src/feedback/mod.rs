//! Overload feedback between nodes (docs/feedback.md): this gateway as the node that asks, and as a sender
//! that is asked.
//!
//! The rules are `flashweir_admission::{ladder, gapping}` and `flashweir_feedback`. A worker counts the
//! requests of each node in front and keeps the newest field of each upstream (`worker`); both go to the
//! control thread with the sentry's samples. There one [`NodePlanner`] for each service decides (`planner`),
//! and what it decided comes back as [`Orders`], swapped whole: what the ladder discards, what each worker
//! may send, and the signed field of each node in front. A response's field is a lookup and a copy.

pub(crate) mod inbox;
mod keys;
mod orders;
pub(crate) mod outbox;
mod planner;
mod quota;
pub(crate) mod receiver;
pub(crate) mod report;
mod senders;
mod upstreams;
mod worker;

pub(crate) use orders::{EVERYBODY_ELSE, Orders};
pub(crate) use planner::{FieldReport, NodePlanner};
pub(crate) use quota::{TrailerQuota, spent_for};
pub(crate) use report::FeedbackReport;
pub(crate) use senders::{SENDER, Sender, SenderNames};
pub(crate) use worker::{Hearing, NodeSample};

/// Header field that carries overload feedback.
pub(crate) const OVERLOAD: http::HeaderName = http::HeaderName::from_static("flashweir-overload");
