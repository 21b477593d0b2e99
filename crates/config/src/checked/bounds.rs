//! Checks `[bounds]`.

use core::time::Duration;

use super::range::{count_within, duration_within, within};
use crate::error::Problem;
use crate::file::BoundsFile;
use crate::text::{DurationText, SizeText};

/// Bounds and timeouts of the gateway itself; none is zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections from clients, over all workers.
    pub max_connections: usize,
    /// Requests being worked on, over all workers, tunnels included.
    pub max_requests_in_flight: usize,
    /// Bytes in the head of one request.
    pub max_head_bytes: usize,
    /// Fields in the head of one request.
    pub max_fields: usize,
    /// Time for a request's head to arrive in full.
    pub header_read_timeout: Duration,
    /// How long a client's connection may stay open without a request.
    pub keep_alive_timeout: Duration,
    /// How long a client may take no byte of a response that is ready.
    pub write_stall_timeout: Duration,
    /// Time for the TLS handshake.
    pub tls_handshake_timeout: Duration,
    /// How long a stop waits for requests being worked on.
    pub drain_timeout: Duration,
    /// Requests at once on one HTTP/2 connection from a client.
    pub http2_max_streams: u32,
}

impl Bounds {
    pub(super) fn check(file: &BoundsFile) -> Result<Self, Problem> {
        let second = DurationText::from_secs(1);
        let minute = DurationText::from_secs(60);
        let hour = DurationText::from_secs(3_600);
        let tenth = DurationText::from_millis(100);
        let many = 1 << 20;
        Ok(Self {
            max_connections: count_within("bounds.max_connections", file.max_connections, 1, many)?,
            max_requests_in_flight: count_within(
                "bounds.max_requests_in_flight",
                file.max_requests_in_flight,
                1,
                many,
            )?,
            // 8 KiB is the least hyper's own buffer can be.
            max_head_bytes: within(
                "bounds.max_head_bytes",
                file.max_head_bytes,
                SizeText(8 << 10),
                SizeText(1 << 20),
            )?
            .0,
            max_fields: count_within("bounds.max_fields", file.max_fields, 16, 1_000)?,
            header_read_timeout: duration_within(
                "bounds.header_read_timeout",
                file.header_read_timeout,
                tenth,
                DurationText::from_secs(300),
            )?,
            keep_alive_timeout: duration_within(
                "bounds.keep_alive_timeout",
                file.keep_alive_timeout,
                second,
                hour,
            )?,
            write_stall_timeout: duration_within(
                "bounds.write_stall_timeout",
                file.write_stall_timeout,
                second,
                hour,
            )?,
            tls_handshake_timeout: duration_within(
                "bounds.tls_handshake_timeout",
                file.tls_handshake_timeout,
                tenth,
                minute,
            )?,
            drain_timeout: duration_within("bounds.drain_timeout", file.drain_timeout, second, hour)?,
            http2_max_streams: within("bounds.http2_max_streams", file.http2_max_streams, 1, 1_000)?,
        })
    }
}
