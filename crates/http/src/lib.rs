//! HTTP intermediary mechanics: connections of clients, field hygiene, upstream pools, TLS and tunnels.
//!
//! Nothing here decides who is admitted; the gateway does, and uses these parts. Everything on a request's
//! path belongs to one single-threaded worker, so types may be `!Send`; what workers share is in
//! [`upstream::UpstreamShared`] and [`tls::ServerTls`].

mod byte_class;
pub mod client;
pub mod dial;
pub mod fields;
pub mod guarded;
pub mod head;
mod head_types;
mod held_end;
mod http2_budget;
mod http2_frames;
pub mod interim;
pub mod listen;
mod names;
mod outbox;
pub mod pipe;
pub mod proxy_header;
mod receive;
pub mod rules;
pub mod serve;
#[cfg(test)]
mod tests;
pub mod tls;
pub mod tunnel;
pub mod upstream;
pub mod violation;

pub use violation::FramingViolation;
