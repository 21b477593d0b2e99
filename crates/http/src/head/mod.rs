//! Heads as they were received: places in their bytes, or, where something is to be changed in them, the
//! types of the crate `http`.
//!
//! Nearly all of HTTP/1.1 stay spans: reading, copying and dropping the types of the crate `http` costs as
//! much as all decisions about a request.

mod answer;
mod own;
mod received;

pub use answer::{Answer, AnswerHead, IntoAnswer, SpanAnswer};
pub use own::OwnHead;
pub use received::{ReceivedHead, SpanHead};

/// Longest head that stays spans: the types hold all that the strict reader accepts of it.
const SPANS_BYTES_MAX: usize = u16::MAX as usize;
