//! Samples and plans as bytes.
//!
//! `message` is the encoding of one value, `field` its rules, one line for each type in `flash_crowd` and `sentry`.

mod field;
mod flash_crowd;
mod message;
mod reader;
mod sentry;

pub use field::Difference;
pub use message::{DecodeError, Message, VERSION, decode, differences, encode};
pub use reader::{Fault, Problem};
