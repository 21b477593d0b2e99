//! Requested documents, by number, and their sizes.

pub mod alias;
#[cfg(test)]
pub(crate) mod goodness_of_fit;
pub mod popularity;
mod popularity_error;
pub mod sizes;

pub use alias::Alias;
pub use popularity::Popularity;
pub use popularity_error::PopularityError;
pub use sizes::{Pareto, ParetoError, Sizes};
