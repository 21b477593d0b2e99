//! RADAR-F4.4: one server by offered load, scaled to what this machine's server does.

use crate::{Bench, crowd, median};
use flashweir_testkit::Origin;
use std::time::Duration;

const WORK_MS: &str = "5";
/// The thesis's loads over the 350/s at which its server saturates.
const LOADS: [f64; 6] = [100.0, 200.0, 300.0, 350.0, 400.0, 450.0];
const SATURATED: f64 = 350.0;
const LENGTH: Duration = Duration::from_secs(5);

pub(crate) fn run(bench: &Bench) {
    println!(
        "\n## One server by offered load (RADAR-F4.4)\n\n`flashweir origin`, one worker of {WORK_MS} ms, {} s each; people wait for two \
         seconds. The capacity is measured before each round. Paper: no problem up to 300/s, saturated from 350/s, failing at 450/s.\n\n\
         | load over the capacity | in the thesis, /s | 90th percentile, ms: median (worst) | in time, %: median (worst) |\n|---|---|---|---|",
        LENGTH.as_secs()
    );
    let mut rows: Vec<(Vec<f64>, Vec<f64>)> = LOADS.map(|_| Default::default()).into();
    for round in 0..bench.rounds {
        let options =
            ["--workers", "1", "--work-ms", WORK_MS, "--iterations-per-ms", &bench.iterations_per_ms];
        let capacity_rps = Origin::start_with(&bench.binary, &options).measure_capacity();
        for (load, row) in LOADS.into_iter().zip(&mut rows) {
            // A fresh one: after an overload it works for people who have left.
            let origin = Origin::start_with(&bench.binary, &options);
            let rps = (capacity_rps * load / SATURATED).round() as u32;
            let result = crowd::send(origin.address(), &[(rps, LENGTH)], round, None);
            row.0.push(result.totals.latency_ms.p90.unwrap_or(f64::INFINITY));
            row.1.push(100.0 * result.totals.goodput as f64 / result.totals.offered as f64);
        }
        eprintln!("server, round {round}: {capacity_rps:.0}/s");
    }
    for (load, (p90_ms, in_time)) in LOADS.into_iter().zip(rows) {
        println!(
            "| {:.2} | {load:.0} | {:.0} ({:.0}) | {:.1} ({:.1}) |",
            load / SATURATED,
            median(&p90_ms),
            p90_ms.iter().copied().fold(0.0, f64::max),
            median(&in_time),
            in_time.iter().copied().fold(100.0, f64::min),
        );
    }
}
