//! What a user sees of `flashweir`, tested through the real binary, one theme in each file.

mod admin;
mod back_pressure;
mod bounds;
mod candidate;
mod certificates;
mod command_line;
mod drain;
mod flash_crowd_candidate;
mod forwarded_fields;
mod hop_by_hop;
mod http2;
mod http2_heads;
mod proxying;
mod refusals;
mod reload;
mod services;
mod several_upstreams;
mod slow_uploads;
mod smuggling;
mod stalled_planners;
mod start_errors;
mod state_file;
mod support;
mod tunnels;
mod upstream_faults;
mod vanishing_clients;
