//! Checks that sections have in common.

pub(crate) mod address;
pub(crate) mod name;
pub(crate) mod range;
pub(crate) mod url;
pub(crate) mod word;
