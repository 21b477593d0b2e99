//! `[bounds]`: bounds and timeouts of the gateway itself.

use core::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::range::{count_within, duration_within, within};
use crate::error::Problem;
use crate::text::{DurationText, SizeText};

/// Bounds and timeouts of the gateway itself. A full bound answers; it never hangs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BoundsFile {
    /// Connections from clients, over all workers. Some more are still answered with 503, the rest are
    /// closed. Where the limit on open files allows fewer, that holds, and a warning at start says so.
    /// Valid: `1` to `1048576`. Raised: more memory (some 10 KiB each, with a
    /// response under way that its client does not read 130 KiB, with TLS more) and more open files.
    /// Lowered: people who only keep a connection open push others out.
    /// Example: `max_connections = 50000`.
    pub max_connections: u32,
    /// Requests being worked on, over all workers, tunnels included. Further ones are refused with 503.
    /// Valid: `1` to `1048576`. Raised: more memory and longer waiting inside the service. Lowered: refusals
    /// although the service could carry more.
    /// Example: `max_requests_in_flight = 1000`.
    pub max_requests_in_flight: u32,
    /// Bytes in the head of one request (request line and fields). More are answered 431.
    /// Valid: `8KiB` to `1MiB`. Raised: more memory per connection for clients that use it. Lowered: people
    /// with many cookies are refused.
    /// Example: `max_head_bytes = "64KiB"`.
    pub max_head_bytes: SizeText,
    /// Fields in the head of one request of a client. More are answered 431.
    /// Valid: `16` to `1000`. Raised: more work per request for clients that use it. Lowered: clients behind
    /// chains of proxies are refused.
    /// Example: `max_fields = 200`.
    pub max_fields: u32,
    /// Fields in the head of one response of an upstream, and in its trailers. With more the client gets 502.
    /// Valid: `16` to `1000`. Raised: more work per response of servers that use it. Lowered: pages that set many
    /// cookies fail.
    /// Example: `max_response_fields = 500`.
    pub max_response_fields: u32,
    /// Time for a request's head to arrive in full, from its first byte. Then 408.
    /// Valid: `100ms` to `5m`. Raised: slow heads (an old attack) hold connections longer. Lowered: people on
    /// poor mobile links are cut off.
    /// Example: `header_read_timeout = "5s"`.
    pub header_read_timeout: DurationText,
    /// How long a client's connection may stay open without a request.
    /// Valid: `1s` to `1h`. Raised: more open connections that do nothing. Lowered: people reading a page
    /// connect again for the next one; a load balancer in front that keeps longer than this sees connections
    /// closed under it.
    /// Example: `keep_alive_timeout = "15s"`.
    pub keep_alive_timeout: DurationText,
    /// How long a client may take no byte of a response that is ready. Then the connection is cut. For twice as long it may
    /// take less than 512 bytes a second of one; then its response is cut (in HTTP/2 that stream alone).
    /// Valid: `1s` to `1h`. Raised: stalled clients hold requests in flight longer. Lowered: phones in a
    /// tunnel lose their download.
    /// Example: `write_stall_timeout = "1m"`.
    pub write_stall_timeout: DurationText,
    /// Time for the TLS handshake.
    /// Valid: `100ms` to `1m`. Raised: half-open handshakes hold connections longer. Lowered: distant clients
    /// fail.
    /// Example: `tls_handshake_timeout = "5s"`.
    pub tls_handshake_timeout: DurationText,
    /// How long a stop (SIGTERM) waits for requests being worked on; what is left then is cut and counted.
    /// Valid: `1s` to `1h`. Raised: restarts take longer behind one slow download. Lowered: requests are cut.
    /// Keep it below the time your process manager waits before it kills.
    /// Example: `drain_timeout = "2m"`.
    pub drain_timeout: DurationText,
    /// Requests at once on one HTTP/2 connection from a client.
    /// Valid: `1` to `1000`. Raised: one connection can ask for more at once. Lowered: pages with many parts
    /// load slower.
    /// Example: `http2_max_streams = 64`.
    pub http2_max_streams: u32,
}

impl Default for BoundsFile {
    fn default() -> Self {
        Self {
            // Some 500 MiB of connection state when all of them have asked once, and within the usual hard limit on open files.
            max_connections: 16_384,
            // Four times the connections to one server: it must not bind before the upstreams' own bound does
            // when there are several.
            max_requests_in_flight: 4_096,
            // As much as nginx accepts (4 buffers of 8 KiB).
            max_head_bytes: SizeText(32 * 1024),
            // Browsers send about 20, chains of proxies another 20; what HTTP libraries commonly bound.
            max_fields: 100,
            // Applications that set a cookie for each of many settings have been seen with 150.
            max_response_fields: 256,
            // A head is a few packets; ten seconds survive several lost ones.
            header_read_timeout: DurationText::from_secs(10),
            // Above the 60 s for which common cloud load balancers keep theirs.
            keep_alive_timeout: DurationText::from_secs(75),
            // A phone changing networks comes back within this or not at all.
            write_stall_timeout: DurationText::from_secs(30),
            // Two round trips; ten seconds survive several lost packets.
            tls_handshake_timeout: DurationText::from_secs(10),
            // Below the 30 s Kubernetes and 90 s systemd wait before they kill.
            drain_timeout: DurationText::from_secs(25),
            // The least RFC 9113 §6.5.2 recommends is 100; browsers assume about this.
            http2_max_streams: 128,
        }
    }
}

/// Bounds and timeouts of the gateway itself; none is zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections from clients, over all workers.
    pub max_connections: usize,
    /// Requests being worked on, over all workers, tunnels included.
    pub max_requests_in_flight: usize,
    /// Bytes in the head of one request.
    pub max_head_bytes: usize,
    /// Fields in the head of one request of a client.
    pub max_fields: usize,
    /// Fields in the head of one response of an upstream.
    pub max_response_fields: usize,
    /// Time for a request's head to arrive in full.
    pub header_read_timeout: Duration,
    /// Time that a client's connection may stay open without a request.
    pub keep_alive_timeout: Duration,
    /// Time that a client may take no byte of a response that is ready.
    pub write_stall_timeout: Duration,
    /// Time for the TLS handshake.
    pub tls_handshake_timeout: Duration,
    /// Time that a stop waits for requests being worked on.
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
            max_response_fields: count_within(
                "bounds.max_response_fields",
                file.max_response_fields,
                16,
                1_000,
            )?,
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
