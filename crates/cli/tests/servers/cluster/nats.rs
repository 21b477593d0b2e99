//! Goal: gateways find a leader by NATS, and another one when it dies; a server that dies is survived.
//! Method: a real nats-server.

use crate::cluster::scene::{KEY, gateway, number, origin, shared, standing, with_key};
use flashweir_testkit::{
    Gateway, GatewayBuilder, Origin, Process, Signal, eventually, reserve_address, skip, until,
};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The bar is 3 s on a machine that has nothing else to do.
const NEW_LEADER_WITHIN: Duration = Duration::from_secs(30);

/// Path at which `make nats-server` puts it, beside the profile's own folder.
fn require(test: &str) -> Option<PathBuf> {
    let installed =
        Path::new(env!("CARGO_BIN_EXE_flashweir")).ancestors().nth(2)?.join("tools/bin/nats-server");
    if installed.exists() {
        return Some(installed);
    }
    skip(test, "nats-server is not installed: `make nats-server` needs Go and its module proxy");
    None
}

struct Server {
    process: Process,
    address: SocketAddr,
    directory: TempDir,
}

fn start(program: &Path, address: SocketAddr, directory: TempDir) -> Server {
    let port = address.port().to_string();
    let store = directory.path().join("store").display().to_string();
    let process =
        Process::start(program, directory.path(), ["-a", "127.0.0.1", "-p", &port, "-js", "-sd", &store]);
    eventually("the NATS server", || TcpStream::connect(address).ok());
    Server { process, address, directory }
}

fn member(origin: &Origin, server: SocketAddr, name: &str, key: &str) -> GatewayBuilder {
    let builder = with_key(gateway(origin, "shop"), key).text("cluster.nats", &format!("nats://{server}"));
    builder.text("cluster.name", name)
}

fn is_leader(gateway: &Gateway) -> bool {
    gateway.status()["cluster"]["is_leader"] == true
}

#[test]
fn another_gateway_leads_when_the_leader_dies() {
    let Some(program) = require("another_gateway_leads_when_the_leader_dies") else { return };
    let server = start(&program, reserve_address(), TempDir::new().expect("a directory"));
    let origin = origin();
    let mut all: Vec<Gateway> =
        ["gw-1", "gw-2", "gw-3"].map(|name| member(&origin, server.address, name, KEY).start()).into();
    eventually("all share", || {
        all.iter()
            .all(|gateway| number(&shared(gateway), "gateways") == 3.0 && standing(gateway) == "sharing")
            .then_some(())
    });
    assert_eq!(all.iter().filter(|gateway| is_leader(gateway)).count(), 1);
    let term = number(&shared(&all[0]), "term");
    let dead = all.remove(all.iter().position(is_leader).expect("a leader"));
    dead.process().signal(Signal::Kill);
    let from = Instant::now();
    until("a new leader", NEW_LEADER_WITHIN, || all.iter().any(is_leader).then_some(()));
    println!("a new leader {:.1} s after the old one was killed", from.elapsed().as_secs_f64());
    until("shares of the new leader", NEW_LEADER_WITHIN, || {
        all.iter()
            .all(|gateway| number(&shared(gateway), "term") > term && standing(gateway) == "sharing")
            .then_some(())
    });
    println!("new shares after {:.1} s", from.elapsed().as_secs_f64());
    let strange = member(&origin, server.address, "gw-4", "1 another-horse-battery-staple\n").start();
    let leader = all.iter().find(|gateway| is_leader(gateway)).expect("a leader");
    eventually("reports of a stranger are refused", || {
        (leader.metrics().value("flashweir_cluster_reports_total{outcome=\"forged\"}") > 3.0).then_some(())
    });
    assert_eq!(number(&shared(leader), "gateways"), 2.0);
    drop(strange);
}

#[test]
fn gateways_outlive_the_nats_server() {
    let Some(program) = require("gateways_outlive_the_nats_server") else { return };
    let server = start(&program, reserve_address(), TempDir::new().expect("a directory"));
    let origin = origin();
    let all = ["gw-1", "gw-2"].map(|name| member(&origin, server.address, name, KEY).start());
    eventually("both share", || all.iter().all(|gateway| standing(gateway) == "sharing").then_some(()));
    let term = number(&shared(&all[0]), "term");
    let Server { process, address, directory } = server;
    process.signal(Signal::Kill);
    drop(process);
    eventually("the server is missed", || {
        all.iter().all(|gateway| standing(gateway) == "holding").then_some(())
    });
    for gateway in &all {
        let answer = gateway.get("/");
        assert_eq!(answer.status(), 200, "{answer:?} {}", shared(gateway));
    }
    let _server = start(&program, address, directory);
    // Of a new term: the old leader goes on to divide until its lease is refused by the new server.
    until("both share again", NEW_LEADER_WITHIN, || {
        all.iter()
            .all(|gateway| number(&shared(gateway), "term") > term && standing(gateway) == "sharing")
            .then_some(())
    });
}

#[test]
fn a_gateway_starts_without_a_nats_server() {
    let origin = origin();
    let alone = member(&origin, reserve_address(), "gw-1", KEY).start();
    eventually("it is alone", || (standing(&alone) == "alone").then_some(()));
    assert_eq!(alone.get("/").status(), 200);
    assert!(alone.process().stderr().contains("NATS cannot be used"), "{}", alone.process().stderr());
}
