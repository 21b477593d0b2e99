//! The crate's parts over real loopback sockets, with upstreams that misbehave in every known way.

mod downstream;
mod encrypted;
mod half_closed;
mod repeats;
mod repeats_http2;
mod support;
mod tunnel;
mod upstream;
