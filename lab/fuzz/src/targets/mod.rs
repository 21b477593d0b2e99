//! The targets, one to a file.

pub(crate) mod access_log;
pub(crate) mod chunked_body;
pub(crate) mod configuration;
pub(crate) mod forwarding_fields;
pub(crate) mod http1_connection;
pub(crate) mod http2_connection;
pub(crate) mod http2_head;
mod hyper_server;
pub(crate) mod proxied_request;
pub(crate) mod proxied_response;
pub(crate) mod recording;
pub(crate) mod response_head;
pub(crate) mod structured_fields;
pub(crate) mod wire;
mod world;

use flashweir_http::fields::{ClientScheme, Hop};
use flashweir_http1::head::HeadLimits;
use std::net::{IpAddr, Ipv4Addr};

/// Bounds of heads: large enough for mutations to be refused for other reasons than their size.
const LIMITS: HeadLimits = HeadLimits { bytes_max: 4_096, fields_max: 48 };

/// A client that is no trusted proxy.
const STRANGER: Hop =
    Hop { peer: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), is_peer_trusted: false, scheme: ClientScheme::Http };
