//! Requested documents, by number, and their sizes.

pub mod alias;
#[cfg(test)]
pub(crate) mod goodness_of_fit;
pub mod popularity;
pub mod sizes;

pub use alias::Alias;
pub use popularity::{Popularity, PopularityError};
pub use sizes::{Pareto, ParetoError, Sizes};
