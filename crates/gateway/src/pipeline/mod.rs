//! The pipeline in the gateway: what `flashweir_admission::pipeline` decides, with plans, wakers and words
//! around it.
//!
//! Each worker has a [`PipelineHost`]. It asks its pipeline about every request (`admit`), answers the bell
//! (`attend`), and its `worker_pipeline` follows the plans in force and turns decisions into metrics,
//! remembered refusals and answers. Those that wait (`waiting`) are let in or refused by `turns`, which their
//! handlers await (`wait`). An admitted request is a [`Permit`], whose share at the origin (`share_guard`)
//! may end before it does, or pause while its client is waited for (`slow_clients`, `crate::upload`).
//!
//! A request that the cache answers has a [`CopyPermit`] instead (`copies`); one that it may yet answer is
//! [`Deferred`] where it would be refused, and may ask once more (`ask_again`).
//!
//! No file here names a controller's rule, and no file above this one asks a controller anything.

mod admit;
mod ask_again;
mod attend;
mod copies;
mod deferred;
mod host;
mod hosted;
mod offered_request;
mod permit;
mod share_guard;
mod slow_clients;
mod turns;
mod wait;
mod waiting;
mod worker_pipeline;

pub(crate) use admit::Admission;
pub(crate) use copies::CopyPermit;
pub(crate) use deferred::Deferred;
pub(crate) use host::PipelineHost;
pub(crate) use offered_request::OfferedRequest;
pub(crate) use permit::Permit;
pub(crate) use slow_clients::Yielding;
pub(crate) use wait::{Decided, Wait};

#[cfg(test)]
mod tests;
