//! The pipeline in the gateway: what `flashweir_admission::pipeline` decides, with plans, wakers and words
//! around it.
//!
//! Each worker has a [`PipelineHost`]. It asks its pipeline about every request (`admit`), keeps the handlers
//! of those that wait (`wait`), follows the plans in force and answers the bell (`attend`), and turns
//! decisions into metrics, remembered refusals and answers (`host`). An admitted request is a [`Permit`],
//! whose share at the origin (`share_guard`) may end before it does, or pause while its client is waited for
//! (`slow_clients`, `crate::upload`).
//!
//! A request that the cache answers has a [`CopyPermit`] instead (`copies`); one that it may yet answer is
//! [`Deferred`] where it would be refused.
//!
//! No file here names a controller's rule, and no file above this one asks a controller anything.

mod admit;
mod attend;
mod copies;
mod deferred;
mod host;
mod permit;
mod share_guard;
mod slow_clients;
mod wait;

pub(crate) use admit::Admission;
pub(crate) use copies::CopyPermit;
pub(crate) use deferred::{Deferred, Instead};
pub(crate) use host::PipelineHost;
pub(crate) use permit::Permit;
pub(crate) use slow_clients::Yielding;
pub(crate) use wait::{Decided, Wait};

#[cfg(test)]
mod tests;
