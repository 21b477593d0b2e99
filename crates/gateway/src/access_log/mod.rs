//! The access log: a line for each request, written when its response has ended.
//!
//! ```text
//! Entry ──► body of the response ──► its end ── line ──► worker's buffer ── 0.2 s ──► queue ──► thread ── file
//! ```
//!
//! A worker gathers its lines and hands them over five times a second, to a thread that may block: a disk
//! that is full or slow costs lines, which are counted, and no time. Of refused requests only some a second
//! are written; the next line says how many were left out.
//!
//! Cost: a branch for a request where it is off.

mod date;
mod entry;
mod file;
mod line;
mod worker;

pub(crate) use entry::{AnswerSource, Entry};
pub(crate) use file::{AccessLines, open};
pub(crate) use worker::{WorkerLog, hand_over};
