//! Envoy's adaptive concurrency: it learns its limit from latencies, with a dip to measure the least of them.

use super::{Place, Standing};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub(crate) const ABOUT: &str =
    "the filter `adaptive_concurrency` with the settings of the example in its documentation.";

/// Path at which `make compare` puts it.
const IN_TOOLS: &str = "../tools/envoy/envoy/_bin/envoy";

pub(super) fn installed() -> Option<PathBuf> {
    Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join(IN_TOOLS)).filter(|path| path.exists())
}

pub(super) fn start(program: &Path, origin: SocketAddr) -> Result<Standing, String> {
    let place = Place::new();
    let (ip, port, origin_ip, origin_port) =
        (place.address.ip(), place.address.port(), origin.ip(), origin.port());
    // Without a timeout of the route Envoy answers what takes 15 s itself; without the upgrade it answers
    // WebSockets with 403.
    let config = format!(
        "static_resources:
  listeners:
  - address: {{ socket_address: {{ address: {ip}, port_value: {port} }} }}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: all
          upgrade_configs: [ {{ upgrade_type: websocket }} ]
          route_config:
            virtual_hosts:
            - {{ name: all, domains: ['*'], routes: [ {{ match: {{ prefix: / }}, route: {{ cluster: origin, timeout: 0s }} }} ] }}
          http_filters:
          - name: envoy.filters.http.adaptive_concurrency
            typed_config:
              \"@type\": type.googleapis.com/envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency
              gradient_controller_config:
                sample_aggregate_percentile: {{ value: 90 }}
                concurrency_limit_params: {{ concurrency_update_interval: 0.1s }}
                min_rtt_calc_params: {{ jitter: {{ value: 10 }}, interval: 60s, request_count: 50 }}
              enabled: {{ default_value: true, runtime_key: adaptive_concurrency.enabled }}
          - name: envoy.filters.http.router
            typed_config:
              \"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
  - name: origin
    connect_timeout: 5s
    type: STATIC
    load_assignment:
      cluster_name: origin
      endpoints:
      - lb_endpoints:
        - endpoint: {{ address: {{ socket_address: {{ address: {origin_ip}, port_value: {origin_port} }} }} }}
"
    );
    let config = place.write("envoy.yaml", &config);
    let flags =
        ["--concurrency", "1", "--log-level", "error", "--disable-hot-restart", "-c"].map(AsRef::as_ref);
    place.start(program, &[&flags[..], &[config.as_os_str()]].concat())
}
