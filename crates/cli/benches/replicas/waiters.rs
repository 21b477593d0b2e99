//! Ten thousand requests for one document that is being fetched: how long after the origin's answer each has
//! it.

use crate::cluster::cpu_s;
use crate::{Bench, median, quantile};
use flashweir_testkit::{GatewayBuilder, Http2Client, Latch, Upstream};
use std::sync::Barrier;
use std::time::Instant;

const CONNECTIONS: u8 = 100;
const STREAMS: u32 = 100;
/// The bar for the 99th percentile.
const BAR_MS: f64 = 20.0;

/// Results of one round.
struct Outcome {
    p50_ms: f64,
    p99_ms: f64,
    cpu_us: f64,
    resident_mib: f64,
    fetches: usize,
}

pub(crate) fn run(bench: &Bench) {
    println!(
        "\n## {} requests that wait for one document\n\n{CONNECTIONS} connections of HTTP/2 with {STREAMS} requests each, two workers. Times from the moment at which the \
         origin answers; clients run on the same machine. Median (worst) of the rounds.\n\n\
         | requests at the origin | half have it after, ms | 99 % after, ms | CPU of the gateway for each, µs | resident, MiB |\n|---|---|---|---|---|",
        u32::from(CONNECTIONS) * STREAMS
    );
    let outcomes: Vec<Outcome> = (0..bench.rounds).map(|_| measure(bench)).collect();
    let cell = |value: fn(&Outcome) -> f64, digits: usize| {
        let values: Vec<f64> = outcomes.iter().map(value).collect();
        format!("{:.digits$} ({:.digits$})", median(&values), values.iter().copied().fold(0.0, f64::max))
    };
    println!(
        "| {} | {} | {} | {} | {} |",
        cell(|it| it.fetches as f64, 0),
        cell(|it| it.p50_ms, 0),
        cell(|it| it.p99_ms, 0),
        cell(|it| it.cpu_us, 1),
        cell(|it| it.resident_mib, 0),
    );
    let worst = outcomes.iter().map(|it| it.p99_ms).fold(0.0, f64::max);
    let verdict = if worst <= BAR_MS { "met" } else { "MISSED" };
    println!(
        "\n99th percentile beyond the origin's time, worst: {worst:.0} ms (bar: {BAR_MS} ms): {verdict}"
    );
}

fn measure(bench: &Bench) -> Outcome {
    let latch = Latch::new();
    let opened = latch.clone();
    let upstream = Upstream::start(move |connection| {
        while connection.read_request().is_some() {
            opened.wait();
            if !connection.answer(200, "Cache-Control: max-age=60\r\n", "a page") {
                return;
            }
        }
    });
    let gateway = GatewayBuilder::new(&bench.binary)
        .upstream(&upstream.url())
        .text("cache.mode", "always")
        .set("gateway.workers", "2")
        .start();
    let mut clients = Http2Client::all_asking_for("/page", CONNECTIONS, STREAMS, gateway.address());
    let all = f64::from(CONNECTIONS) * f64::from(STREAMS);
    gateway.wait_metric("flashweir_cache_waiting", all - 1.0);
    let resident_mib = gateway.process().resident_bytes() as f64 / f64::from(1 << 20);
    let before = cpu_s(gateway.process());
    let barrier = Barrier::new(usize::from(CONNECTIONS) + 1);
    let times: Vec<f64> = std::thread::scope(|scope| {
        let readers: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                scope.spawn(|| {
                    barrier.wait();
                    let begun = Instant::now();
                    let answered = |_| {
                        let (_, status) = client.next_status().expect("an answer");
                        assert_eq!(status, 200);
                        begun.elapsed().as_secs_f64() * 1e3
                    };
                    (0..STREAMS).map(answered).collect::<Vec<f64>>()
                })
            })
            .collect();
        barrier.wait();
        latch.open();
        readers.into_iter().flat_map(|it| it.join().expect("answers")).collect()
    });
    let cpu_us = (cpu_s(gateway.process()) - before) * 1e6 / all;
    Outcome {
        p50_ms: median(&times),
        p99_ms: quantile(&times, 0.99),
        cpu_us,
        resident_mib,
        fetches: upstream.request_count(),
    }
}
