//! HTTP intermediary mechanics: strict request heads, field hygiene, upstream pools, TLS and tunnels.
//!
//! Nothing here decides who is admitted; the gateway does, and uses these parts. Everything on a request's
//! path belongs to one single-threaded worker, so types may be `!Send`; what workers share is in
//! [`upstream::UpstreamShared`] and [`tls::ServerTls`].

mod byte_class;
pub mod client;
pub mod dial;
pub mod fields;
pub mod guarded;
pub mod head_guard;
mod head_line;
mod held_end;
mod http2_budget;
mod http2_frames;
pub mod interim;
pub mod listen;
mod refused_head;
pub mod rules;
pub mod serve;
#[cfg(test)]
mod tests;
pub mod tls;
pub mod tunnel;
pub mod upstream;
pub mod violation;

pub use violation::FramingViolation;
