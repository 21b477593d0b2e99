//! The components' metrics, a file for each: what is counted, its labels, and how it is exported.

pub(crate) mod bounds;
pub(crate) mod candidate;
pub(crate) mod classes;
pub(crate) mod connections;
pub(crate) mod flash_crowd;
pub(crate) mod kernel;
pub(crate) mod process;
pub(crate) mod requests;
pub(crate) mod responses;
pub(crate) mod sentry;
pub(crate) mod upstream;
