//! An origin, and gateways that share its limit.

use crate::cluster::shared_limit::{WAIT_MS, WORKERS};
use flashweir_testkit::{Flashweir, Gateway, GatewayBuilder, Origin};
use serde_json::Value;
use std::net::SocketAddr;

pub(crate) const KEY: &str = "1 correct-horse-battery-staple\n";

pub(crate) fn binary() -> Flashweir {
    Flashweir::new(env!("CARGO_BIN_EXE_flashweir"))
}

pub(crate) fn origin() -> Origin {
    let (workers, wait_ms) = (WORKERS.to_string(), WAIT_MS.to_string());
    let options =
        ["--workers", &workers, "--work-ms", "0", "--wait-ms", &wait_ms, "--iterations-per-ms", "1000"];
    Origin::start_with(&binary(), &options)
}

/// A gateway with one worker before the origin, without the cluster's section. The flash-crowd stage is off:
/// the sentry owns the limit.
pub(crate) fn gateway(origin: &Origin, name: &str) -> GatewayBuilder {
    gateway_of(&binary(), origin, name)
}

fn gateway_of(binary: &Flashweir, origin: &Origin, name: &str) -> GatewayBuilder {
    let builder = GatewayBuilder::new(binary).upstream(&origin.url()).text("gateway.name", name);
    // Services are recognised by name, and the first has the gateway's.
    builder.set("gateway.workers", "1").text("flash_crowd.mode", "off")
}

pub(crate) fn with_key(builder: GatewayBuilder, key: &str) -> GatewayBuilder {
    std::fs::write(builder.directory().join("cluster.keys"), key).expect("a writable directory");
    builder.text("cluster.keys_file", "cluster.keys")
}

pub(crate) fn leader(origin: &Origin, listen: SocketAddr) -> GatewayBuilder {
    leader_of(&binary(), origin, listen)
}

/// A leader by another program, as one whose clock is wrong.
pub(crate) fn leader_of(binary: &Flashweir, origin: &Origin, listen: SocketAddr) -> GatewayBuilder {
    with_key(gateway_of(binary, origin, "shop"), KEY).text("cluster.listen", &listen.to_string())
}

pub(crate) fn follower(origin: &Origin, leader: SocketAddr) -> GatewayBuilder {
    with_key(gateway(origin, "shop"), KEY).text("cluster.leader", &leader.to_string())
}

/// The shared service in a gateway's status.
pub(crate) fn shared(gateway: &Gateway) -> Value {
    gateway.status()["cluster"]["services"][0].clone()
}

pub(crate) fn standing(gateway: &Gateway) -> String {
    shared(gateway)["standing"].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("no {key} in {value}"))
}
