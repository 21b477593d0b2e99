//! A whole gateway between scripted origins and clients on loopback.

mod bounds;
mod common;
mod http2;
mod large_bodies;
mod lasting;
mod proxying;
mod sentry;
