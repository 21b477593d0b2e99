//! RADAR-F4.6: what a level of redirection adds to a response, and what it costs the machine that does it.

use crate::cluster::{Cluster, Settings, cpu_s};
use crate::site::{self, HOST};
use crate::{Bench, median, quantile};
use flashweir_testkit::{Client, Message};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Requests by each way in a round.
const REQUESTS: usize = 1_500;
const WARM_UP: usize = 200;

pub(crate) fn run(bench: &Bench) {
    println!(
        "\n## What a level of redirection adds (RADAR-F4.6)\n\nOne document in a replica's memory, one client with open connections, the three \
         ways in turns, {REQUESTS} requests by each way in a round. Paper: about 3 ms for each level, with redirects.\n\n\
         | nodes answer by | way | median, ms: median (worst) of rounds | 95th percentile, ms | added by the level, ms: median (worst) |\n|---|---|---|---|---|"
    );
    let mut costs = Vec::new();
    for answer in ["proxy", "302"] {
        let mut by_way: [(Vec<f64>, Vec<f64>); 3] = Default::default();
        let mut added: [Vec<f64>; 3] = Default::default();
        let mut cost: [Vec<f64>; 3] = Default::default();
        for round in 0..bench.rounds {
            let cluster = Cluster::start(bench, settings(answer));
            let round_costs = measure(&cluster, &mut by_way, &mut added);
            for (all, one) in cost.iter_mut().zip(round_costs) {
                all.push(one);
            }
            eprintln!("levels, {answer}, round {round}: {round_costs:.1?} µs");
        }
        for (way, name) in
            ["replica", "redirector, replica", "distributor, redirector, replica"].iter().enumerate()
        {
            let worst = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
            let (medians, tails) = &by_way[way];
            let levels = match way {
                0 => "–".to_owned(),
                _ => format!("{:.2} ({:.2})", median(&added[way]), worst(&added[way])),
            };
            println!(
                "| {answer} | {name} | {:.2} ({:.2}) | {:.2} | {levels} |",
                median(medians),
                worst(medians),
                median(tails)
            );
        }
        costs.push((answer, cost));
    }
    println!(
        "\nCPU time of a request by the kernel's books, µs, median (worst) of rounds:\n\n| nodes answer by | distributor | redirector | replica (a hit) | replicas that a redirector with one core can feed |\n|---|---|---|---|---|"
    );
    for (answer, [distributor, redirector, replica]) in costs {
        let cell = |values: &[f64]| {
            format!("{:.0} ({:.0})", median(values), values.iter().copied().fold(0.0, f64::max))
        };
        println!(
            "| {answer} | {} | {} | {} | {:.1} |",
            cell(&distributor),
            cell(&redirector),
            cell(&replica),
            median(&replica) / median(&redirector)
        );
    }
}

fn settings(answer: &'static str) -> Settings {
    Settings {
        replicas: 1,
        work_ms: 1.0,
        interval: Duration::from_secs(1),
        // Never full, never a crowd.
        high_rps: 100_000.0,
        low_rps: 50_000.0,
        answer,
        rules: "repaired",
    }
}

/// Asks by each way in turns; CPU time of distributor, redirector and replica for each request of theirs,
/// microseconds.
fn measure(cluster: &Cluster, by_way: &mut [(Vec<f64>, Vec<f64>); 3], added: &mut [Vec<f64>; 3]) -> [f64; 3] {
    let entries = [cluster.replicas[0].address, cluster.redirector.address(), cluster.distributor.address()];
    let mut people = entries.map(|entry| Person { entry, open: BTreeMap::new() });
    for person in &mut people {
        (0..WARM_UP).for_each(|_| drop(person.ask()));
    }
    let processes =
        [cluster.distributor.process(), cluster.redirector.process(), &cluster.replicas[0].process];
    let before = processes.map(cpu_s);
    let mut times: [Vec<f64>; 3] = Default::default();
    for _ in 0..REQUESTS {
        for (person, times) in people.iter_mut().zip(&mut times) {
            let begun = Instant::now();
            let answer = person.ask();
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            assert_eq!(answer.status(), 200);
        }
    }
    let after = processes.map(cpu_s);
    let medians = times.each_ref().map(|times| median(times));
    for (way, (all, tails)) in by_way.iter_mut().enumerate() {
        all.push(medians[way]);
        tails.push(quantile(&times[way], 0.95));
        if way > 0 {
            added[way].push(medians[way] - medians[way - 1]);
        }
    }
    // Each way passes the nodes behind it too.
    let requests = [1, 2, 3].map(|ways| (ways * REQUESTS) as f64);
    [0, 1, 2].map(|node| (after[node] - before[node]) * 1e6 / requests[node])
}

/// A client that follows redirects, with a connection to each node.
struct Person {
    entry: SocketAddr,
    open: BTreeMap<SocketAddr, Client>,
}

impl Person {
    fn ask(&mut self) -> Message {
        let path = site::path("0");
        let mut answer = self.ask_at(self.entry, HOST, &path);
        while answer.status() == 302 {
            let location = answer.field("location").expect("where to go").to_owned();
            let rest = location.strip_prefix("http://").expect("a URL");
            let (host, target) = rest.split_once('/').expect("a path");
            answer = self.ask_at(host.parse().expect("an address"), host, &format!("/{target}"));
        }
        answer
    }

    fn ask_at(&mut self, address: SocketAddr, host: &str, target: &str) -> Message {
        let client = self.open.entry(address).or_insert_with(|| Client::connect(address));
        client.ask(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
    }
}
