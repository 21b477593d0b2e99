//! Requests' bodies on their way to the origin.
//!
//! An upstream connection is taken only when the body is here whole, or a first part of it that no drip can
//! make up: until then the body is *gathered*, in our memory, by a request that has been admitted to nothing.
//! A larger body then goes on as it comes and *holds* its connection; of that, uploads that are waited for
//! get a part of the pool and no more. Both are counted in each worker's [`UploadRoom`], which cuts the
//! slowest where there are too many. A body whose client waits for 100 is not gathered: its origin is asked
//! first ([`Expectation`]).

mod body;
mod expectation;
mod gather;
mod room;

pub(crate) use body::{PartialBody, UploadBody, Watchers};
pub(crate) use expectation::{Expectation, SilentOrigins};
pub(crate) use gather::{GatherError, GatherOptions, gather};
pub(crate) use room::{HoldOptions, UploadRoom};
