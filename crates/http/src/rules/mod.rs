//! Rules for the head of a request over HTTP/2: those of HTTP/1.1.
//!
//! `flashweir-http1` judges each line as it reads it; HTTP/2 judges the decoded head ([`judge_http2`]),
//! for its bytes are compressed. A request cannot slip through by changing its version. The request
//! target is judged in [`crate::fields`], which both versions pass, too.

pub(crate) mod field;
mod http2;
#[cfg(test)]
mod tests;

pub use http2::{judge_http2, judge_http2_trailers};
