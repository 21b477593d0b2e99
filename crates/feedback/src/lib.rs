//! Feedback: what an overloaded node asks of the nodes in front of it, as soft state.
//!
//! ```text
//! overloaded node                                              sender (a node in front of it)
//!   Advertiser ── Senders: who sends, who gets which share       Intake ── UpstreamLimit
//!       └─ field ── on every response: Flashweir-Overload ─────────►┘          └─ rate, ranks, for gapping
//! ```
//!
//! **What it decides.** At the overloaded node: which share of the admissible rate each sender may use
//! ([`Advertiser`]). At the sender: which limit is in force for one upstream, and when it ends
//! ([`UpstreamLimit`]).
//!
//! **The rule.** A message holds for its time to live and is repeated before that; a message that is not
//! newer than the last one changes nothing; a limit that is not renewed opens step by step. So no message has
//! to arrive: lost ones are repeated, reordered and replayed ones are ignored, and a node that dies limits
//! its senders for a few seconds only. All times are durations, so clocks need not agree.
//!
//! **Why not "on" and "off"**, as the paper has it: losing "off" throttles for ever and losing "on" overloads
//! (its §5.3 says so). In the simulator, 40 % of the messages lost cost edge messages 8 % of the throughput
//! and soft state nothing (ALGORITHMS §5.2).
//!
//! **Authenticity.** The field ends with a truncated HMAC-SHA-256 under one of a [`KeyRing`]'s keys; this
//! crate is pure, so the shell supplies the [`Mac`]. The MAC covers a context that both ends know, so that
//! one sender's message is no other's.
//!
//! **Cost.** A response carries a field that is signed once for each refresh, so that emitting is a copy; a
//! field equal to the last one is recognised by comparison. `benches/feedback` measures both. Memory is
//! bounded by [`limits::FEEDBACK_SENDERS`].
//!
//! **Failure modes.** Without keys any host on the path may throttle a sender, down to a floor and until the
//! time to live is over ([`UpstreamLimit`] says which). Sources: Iyer, Tewari and Kant §2.1 and §4.3
//! (feedback, its repetition); RFC 7339 (validity and sequence in SIP); RFC 9651 (the field's syntax).
//!
//! [`limits::FEEDBACK_SENDERS`]: flashweir_core::limits::FEEDBACK_SENDERS
#![cfg_attr(not(test), no_std)]
extern crate alloc;

mod advertiser;
pub mod caller;
mod datagram;
mod division;
mod field;
mod intake;
mod key_file;
mod keys;
mod message;
mod senders;
#[cfg(test)]
mod tests;
mod upstream_limit;

pub use advertiser::{Advertisement, Advertiser};
pub use datagram::{DATAGRAM_BYTES, Datagram};
pub use division::{Claim, divide};
pub use field::{Field, FieldError, NAME};
pub use intake::{Intake, Taken};
pub use key_file::{KeyFileError, KeyLineProblem, SharedKeys};
pub use keys::{KEY_ID_MAX, KeyRing, KeyRingError, Mac, TAG_BYTES};
pub use message::{Feedback, SEVERITY_MAX, TTL_MAX, TTL_MIN};
pub use senders::{Judged, SenderSlot, Senders};
pub use upstream_limit::{Limit, News, RATE_FLOOR, UpstreamLimit};
