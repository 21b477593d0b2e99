//! A measurement, by `make bench-gateways-kubernetes`: what gateways that are the pods of a Service admit
//! beside one by itself, through the Lease and the streams of a real control plane. The crowds, and how they
//! are counted, are those of `make bench-gateways`.

use crate::cluster::shared_limit::{COUNTS, MeasuredGateway, Ratios, measure, rounds};
use crate::kubernetes::PEOPLE;
use crate::kubernetes::gateways::{Gateway, SERVICE, Scene};
use crate::kubernetes::workload::{Cluster, order};
use flashweir_testkit::{Client, until};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;

/// Clients have addresses of their own in the cluster's network.
const SOURCES: [&str; 2] = ["--source-network", PEOPLE];
/// The gateway by itself; no pod gets this address.
const ALONE: &str = "10.244.200.9";
const WITHIN: Duration = Duration::from_secs(120);

impl MeasuredGateway for Gateway {
    fn door(&self) -> SocketAddr {
        SocketAddr::new(self.ip, 8081)
    }

    fn says(&self) -> Value {
        Client::get(SocketAddr::new(self.ip, 9900), "/status").json()
    }
}

/// Goal: however many gateways, they admit what one does. Method: one by itself, then 1, 4 and 16 pods,
/// before the same origin.
#[test]
#[ignore = "minutes of measurements: make bench-gateways-kubernetes"]
fn gateways_of_a_service_admit_what_one_does() {
    let cluster = Cluster {
        test: "gateways_of_a_service_admit_what_one_does",
        namespace: "numbers",
        users: &["gateway"],
        ..Cluster::default()
    };
    cluster.play(|plane| {
        let scene = Scene::begin(plane, 1);
        let mut ratios = Ratios::default();
        for round in 0..rounds() {
            let one = {
                let _process = scene.start_alone(ALONE);
                let gateway = until("a gateway by itself", WITHIN, || {
                    let gateway = Gateway::ask(ALONE.parse().expect("an address"))?;
                    let answers = || Client::get(gateway.door(), "/").status() == 200;
                    answers().then_some(gateway)
                });
                measure(&[&gateway], 100 * round, &SOURCES)
            };
            let several = COUNTS.map(|count| {
                order(&scene.api, "flashweir", count as u32);
                let gateways = scene.wait_shared(&format!("{count} pods of {SERVICE} share"), count, 0);
                measure(&gateways.iter().collect::<Vec<_>>(), 100 * round + 10, &SOURCES)
            });
            ratios.add(&one, several);
        }
        ratios.judge();
    });
}
