//! The configuration in the words of the HTTP mechanics.

use flashweir_config::{Config, Protocol as ConfiguredProtocol, Upstream, Weights};
use flashweir_core::Duration;
use flashweir_http::guarded::Protocol;
use flashweir_http::serve::HeadLimits;
use flashweir_http::serve::ServeSettings;
use flashweir_http::upstream::{EjectionSettings, LearningSettings, PoolSettings, UpstreamSettings};

/// Silence of an HTTP/2 client with open requests after which it gets a ping.
const HTTP2_PING_AFTER: Duration = Duration::from_secs(20);

/// Settings by which clients' connections are served.
pub(crate) fn serve_settings(config: &Config) -> ServeSettings {
    let bounds = &config.bounds;
    ServeSettings {
        head: HeadLimits { bytes_max: bounds.max_head_bytes, fields_max: bounds.max_fields },
        head_timeout: bounds.header_read_timeout,
        idle_timeout: bounds.keep_alive_timeout,
        http2_streams_max: bounds.http2_max_streams,
        http2_ping_after: HTTP2_PING_AFTER,
    }
}

/// Settings of exchanges with upstreams, with this number of fields in a response at most. The bound on
/// connections holds over all workers, and each has its own pool: every worker gets an equal part, at least
/// one.
pub(crate) fn upstream_settings(
    upstream: &Upstream,
    response_fields_max: usize,
    workers: usize,
) -> UpstreamSettings {
    UpstreamSettings {
        addresses: upstream.urls.clone(),
        protocol: match upstream.protocol {
            ConfiguredProtocol::Http1 => Protocol::Http1,
            ConfiguredProtocol::Http2 => Protocol::Http2,
        },
        connections_max: (upstream.max_connections / workers).max(1),
        connect_timeout: upstream.connect_timeout,
        response_header_timeout: upstream.response_header_timeout,
        response_fields_max,
        body_idle_timeout: upstream.body_idle_timeout,
        pool_idle_timeout: upstream.idle_timeout,
        ca_file: upstream.ca_file.clone(),
        pool: pool_settings(upstream),
    }
}

/// Settings of the pool: ejection of servers, their return, and the share of each.
fn pool_settings(upstream: &Upstream) -> PoolSettings {
    let defaults = PoolSettings::default();
    let health = &upstream.health;
    PoolSettings {
        ejection: EjectionSettings {
            failures: health.failures_to_eject,
            failed_probes: health.failures_to_eject,
            first: health.eject_for,
            longest: defaults.ejection.longest.max(health.eject_for),
            part_max: health.max_ejected,
        },
        slow_start: upstream.slow_start,
        learning: match upstream.weights {
            Weights::Utilisation => Some(LearningSettings::UTILISATION),
            Weights::ResponseTime => Some(LearningSettings::RESPONSE_TIME),
            Weights::Off => None,
        },
        probe_interval: health.active.as_ref().map(|active| active.interval),
    }
}

/// Requests one worker can have at all upstreams at once.
pub(crate) fn upstream_capacity(settings: &UpstreamSettings) -> usize {
    settings.connections_max.saturating_mul(settings.addresses.len())
}
