//! Placement of copies of documents on servers.
//!
//! [`Watermarks`] and [`Overload`] say when a server is overloaded; [`published`] is ACDN's offload,
//! [`spread`] the repaired one, and [`Felber`] an earlier trigger; [`DeletionSettings`] says when a copy
//! goes. All of them look at what is *offered* for a document, which includes what admission control refused:
//! by the admitted rate a system looks calm precisely while demand is refused.

mod deletion;
mod felber;
pub mod published;
mod spread;
mod watermarks;

pub use deletion::{DeletionSettings, LowDemand};
pub use felber::{Felber, FelberPhase, FelberThresholds};
pub(crate) use spread::room_rps;
pub use spread::{DocumentLoad, NewCopy, achievable_loads, spread};
pub use watermarks::{Overload, Watermarks};
