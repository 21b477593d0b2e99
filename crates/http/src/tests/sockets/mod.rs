//! The crate's parts over real loopback sockets, with upstreams that misbehave in every known way.

mod downstream;
mod encrypted;
mod repeats;
mod repeats_http2;
mod support;
mod tunnel;
mod upstream;
