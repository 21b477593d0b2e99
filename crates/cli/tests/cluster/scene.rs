//! An origin, gateways that share its limit, and a crowd at each.

use flashweir_testkit::{Flashweir, Gateway, GatewayBuilder, Load, Origin};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) const KEY: &str = "1 correct-horse-battery-staple\n";
/// Requests at once that the origin serves, and how long each has a worker without burning a processor: 200 a second.
pub(crate) const WORKERS: u32 = 10;
const WAIT_MS: f64 = 50.0;
pub(crate) const CAPACITY_RPS: f64 = WORKERS as f64 * 1e3 / WAIT_MS;
/// A crowd may take this long beyond its duration.
const GRACE: Duration = Duration::from_secs(120);

pub(crate) fn binary() -> Flashweir {
    Flashweir::new(env!("CARGO_BIN_EXE_flashweir"))
}

pub(crate) fn origin() -> Origin {
    let (workers, wait_ms) = (WORKERS.to_string(), WAIT_MS.to_string());
    let options =
        ["--workers", &workers, "--work-ms", "0", "--wait-ms", &wait_ms, "--iterations-per-ms", "1000"];
    Origin::start_with(&binary(), &options)
}

/// A gateway with one worker before the origin, without the cluster's section. The flash-crowd stage is off: the sentry owns the limit.
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

/// A crowd of this many requests a second from many addresses.
pub(crate) fn crowd(gateway: SocketAddr, rate_rps: f64, seconds: u32, seed: u64) -> Load {
    let (rate, seconds, seed) = (format!("{rate_rps:.2}"), format!("{seconds}s"), seed.to_string());
    let options = ["--rate", &rate, "--duration", &seconds, "--sources", "400", "--seed", &seed];
    Load::start(&binary(), &format!("http://{gateway}/"), &options)
}

pub(crate) fn finish(crowds: Vec<Load>) {
    for crowd in crowds {
        let _ = crowd.finish(GRACE);
    }
}

/// What a gateway says of the service whose limit is shared.
pub(crate) fn shared(gateway: &Gateway) -> Value {
    gateway.status()["cluster"]["services"][0].clone()
}

pub(crate) fn standing(gateway: &Gateway) -> String {
    shared(gateway)["standing"].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn admitted(gateways: &[&Gateway]) -> u64 {
    gateways.iter().map(|gateway| gateway.status()["requests"]["admitted"].as_u64().unwrap_or(0)).sum()
}

/// Requests of all these gateways at the origin, by their sentries.
pub(crate) fn at_origin(gateways: &[&Gateway]) -> u64 {
    let in_flight =
        |gateway: &&Gateway| gateway.status()["services"][0]["sentry"]["in_flight"].as_u64().unwrap_or(0);
    gateways.iter().map(in_flight).sum()
}

pub(crate) fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("no {key} in {value}"))
}
