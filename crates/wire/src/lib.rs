//! Samples and plans as bytes.
//!
//! `message` is the encoding of one value, `field` its rules, one line for each type in `flash_crowd` and
//! `sentry`. A `recording` is a file of what planners saw and decided; a `recorder` writes one, and a
//! `replay` lets the planners decide again.

mod field;
mod flash_crowd;
mod message;
mod reader;
pub mod recorder;
pub mod recording;
pub mod replay;
mod sentry;
#[cfg(test)]
mod tests;

pub use field::Difference;
pub use message::{DecodeError, Message, VERSION, decode, differences, encode};
pub use reader::{Fault, Problem};
pub use recorder::Recorder;
