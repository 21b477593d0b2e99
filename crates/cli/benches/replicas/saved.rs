//! RADAR-F4.7, counted in work: CPU-seconds of an origin that replicas save, by their number.

use crate::cluster::{Cluster, Settings, cpu_s};
use crate::{Bench, crowd, median};
use std::time::Duration;

const REPLICAS: [usize; 4] = [1, 2, 3, 4];
/// Capacity of one replica, requests/s.
const HIGH_RPS: f64 = 100.0;
/// More than four replicas and the origin take together.
const DEMAND_RPS: u32 = 560;
/// Until copies are placed and the cluster knows that it is full.
const WARM_UP: Duration = Duration::from_secs(4);
const LENGTH: Duration = Duration::from_secs(8);
/// The bar of growth from one to four.
const GROWTH_MIN: f64 = 3.6;

/// Counts of one cluster.
struct Outcome {
    answered: f64,
    /// CPU-seconds of the origin for each second: what the answers would have cost it, less what it spent.
    saved: f64,
    spent: f64,
    /// The busiest replica over their mean.
    uneven: f64,
    /// CPU time of all nodes but the origin, for each answer, microseconds.
    nodes_us: f64,
}

pub(crate) fn run(bench: &Bench) {
    println!(
        "\n## CPU-seconds of the origin that replicas save (RADAR-F4.7)\n\nA distributor, a redirector and 1 to 4 replicas that take {HIGH_RPS}/s each (their \
         high watermark) before an origin of 10 ms CPU time a page; {DEMAND_RPS}/s for {} documents of Minix3's popularity, more than all together take. \
         Saved: answers times the measured CPU time of a page at the origin, less what the origin spent, for each second.\n\n\
         | replicas | answered/s: median (worst) | saved, CPU-s/s: median (worst) | growth: median (worst) | spent by the origin, CPU-s/s | busiest replica over the mean, worst | CPU of distributor, redirector and replicas for an answer, µs |\n|---|---|---|---|---|---|---|",
        crowd::DOCUMENTS
    );
    let rounds: Vec<[Outcome; 4]> = (0..bench.rounds)
        .map(|round| {
            REPLICAS.map(|replicas| {
                let outcome = measure(bench, replicas, round);
                eprintln!("saved, round {round}, {replicas}: {:.2} CPU-s/s", outcome.saved);
                outcome
            })
        })
        .collect();
    let mut growth_from_one = f64::INFINITY;
    for (place, replicas) in REPLICAS.into_iter().enumerate() {
        let of = |value: fn(&Outcome) -> f64| -> Vec<f64> {
            rounds.iter().map(|round| value(&round[place])).collect()
        };
        let growth: Vec<f64> = rounds.iter().map(|round| round[place].saved / round[0].saved).collect();
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let (answered, saved) = (of(|it| it.answered), of(|it| it.saved));
        println!(
            "| {replicas} | {:.0} ({:.0}) | {:.2} ({:.2}) | {:.2} ({:.2}) | {:.2} | {:.3} | {:.0} |",
            median(&answered),
            least(&answered),
            median(&saved),
            least(&saved),
            median(&growth),
            least(&growth),
            median(&of(|it| it.spent)),
            of(|it| it.uneven).into_iter().fold(0.0, f64::max),
            median(&of(|it| it.nodes_us)),
        );
        growth_from_one = least(&growth);
    }
    let verdict = if growth_from_one >= GROWTH_MIN { "met" } else { "MISSED" };
    println!(
        "\nGrowth from 1 to 4, worst of the rounds: {growth_from_one:.2} (bar: {GROWTH_MIN}): {verdict}"
    );
}

fn measure(bench: &Bench, replicas: usize, round: u64) -> Outcome {
    let settings = Settings {
        replicas,
        work_ms: 10.0,
        interval: Duration::from_secs(1),
        high_rps: HIGH_RPS,
        low_rps: HIGH_RPS * 2.0 / 3.0,
        answer: "proxy",
        rules: "repaired",
    };
    let cluster = Cluster::start(bench, settings);
    let page_s = page_cpu_s(&cluster);
    crowd::send(cluster.distributor.address(), &[(DEMAND_RPS, WARM_UP)], round, None);
    let nodes = || {
        let replicas = cluster.replicas.iter().map(|it| &it.process);
        let fronts = [cluster.distributor.process(), cluster.redirector.process()];
        replicas.chain(fronts).map(cpu_s).sum::<f64>()
    };
    let counts = || cluster.replicas.iter().map(|it| it.offered()).collect::<Vec<f64>>();
    let before = (cpu_s(cluster.origin.process()), nodes(), counts());
    let result = crowd::send(cluster.distributor.address(), &[(DEMAND_RPS, LENGTH)], round + 100, None);
    let after = (cpu_s(cluster.origin.process()), nodes(), counts());
    let (seconds, answers) = (LENGTH.as_secs_f64(), result.totals.goodput as f64);
    let spent = (after.0 - before.0) / seconds;
    let loads: Vec<f64> = after.2.iter().zip(&before.2).map(|(after, before)| after - before).collect();
    let mean = loads.iter().sum::<f64>() / loads.len() as f64;
    Outcome {
        answered: answers / seconds,
        saved: answers * page_s / seconds - spent,
        spent,
        uneven: loads.iter().copied().fold(0.0, f64::max) / mean,
        nodes_us: (after.1 - before.1) * 1e6 / answers.max(1.0),
    }
}

/// CPU time of a page at the origin, which nothing else asks meanwhile.
fn page_cpu_s(cluster: &Cluster) -> f64 {
    const PAGES: u32 = 50;
    let mut client = flashweir_testkit::Client::connect(cluster.origin.address());
    let before = cpu_s(cluster.origin.process());
    for _ in 0..PAGES {
        assert_eq!(client.ask("GET /work HTTP/1.1\r\nHost: origin\r\n\r\n").status(), 200);
    }
    (cpu_s(cluster.origin.process()) - before) / f64::from(PAGES)
}
