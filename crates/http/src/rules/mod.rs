//! Rules for the head of a request: one set for both versions of HTTP.
//!
//! HTTP/1.1 judges each line as it arrives ([`crate::head_guard`], before any parser has seen the end of the
//! head); HTTP/2 judges the decoded head ([`judge_http2`]), for its bytes are compressed. Both ask
//! `field::judge` and `flashweir_http1::head::is_authority`, so a request cannot slip through by changing its version.
//! The request target is judged in [`crate::fields`], which both versions pass, too.

pub(crate) mod field;
mod http2;
#[cfg(test)]
mod tests;

pub use http2::{judge_http2, judge_http2_trailers};
