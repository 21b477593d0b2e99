//! Instructions of a request, counted by callgrind (`make instructions`): where they go, and their budget.
//!
//! 1. A [`Profile`] is what callgrind wrote; the difference of two runs leaves the requests by which they
//!    differ.
//! 2. [`Counts`] are the totals of one request: instructions, system calls, allocations, copied memory.
//! 3. [`component`] names the component of a file or function; a [`Phase`] is the inclusive cost of
//!    functions.
//! 4. A [`Budget`] bounds a scenario's total and its phases; [`page`] is the page with all tables.

mod budget;
mod callgrind;
mod component;
mod counts;
mod page;
mod phase;
mod scenario;

pub use budget::Budget;
pub use callgrind::{Calls, Cost, Place, Profile, ProfileError};
pub use component::{component, component_of_function};
pub use counts::{Counts, PerRequest};
pub use page::{Measured, Results, page};
pub use phase::{PHASES, Phase};
pub use scenario::Scenario;
