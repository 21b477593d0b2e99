//! Tests of the public interface, one theme in each file.

mod serving;
mod serving_http2;
mod sockets;
