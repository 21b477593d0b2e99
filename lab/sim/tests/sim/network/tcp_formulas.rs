//! Throughput of one flow over a wire that loses packets at random, against two published formulas in their
//! ranges.
//!
//! Padhye, Firoiu, Towsley and Kurose (SIGCOMM 1998, eq. 30) take timeouts into account but lose all of a
//! window's rest with a packet, as Reno would; NewReno with limited transmit has fewer timeouts. So the
//! formula is asked where the first timeout costs no more than a few round trips. Mathis, Semke, Mahdavi and
//! Ott (CCR 27(3), 1997) leave timeouts out: rate = C / (round trip · √p) with C = 0.93 for random losses and
//! delayed acknowledgements (their table 1), which holds while losses are rare.

use crate::network::tools::{Pair, wide};
use flashweir_core::{Duration, Instant};
use flashweir_sim::network::{Counting, LinkSettings, TcpSettings};

const LOSSES: [f64; 6] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02];
const ROUND_TRIPS_MS: [u64; 4] = [20, 50, 100, 200];
/// Largest deviation accepted, of the formula's value.
const TOLERANCE: f64 = 0.15;
/// Losses in each run: enough for a standard error of some 3 %.
const LOSSES_EACH: f64 = 300.0;
const TIMEOUT_MARGIN: Duration = Duration::from_millis(200);

/// Segments a second, two for each acknowledgement.
fn padhye(loss: f64, round_trip_s: f64, timeout_s: f64) -> f64 {
    let b = 2.0;
    let window_part = round_trip_s * (2.0 * b * loss / 3.0).sqrt();
    let timeouts = (3.0 * (3.0 * b * loss / 8.0).sqrt()).min(1.0);
    1.0 / (window_part + timeout_s * timeouts * loss * (1.0 + 32.0 * loss * loss))
}

fn mathis(loss: f64, round_trip_s: f64) -> f64 {
    0.93 / (round_trip_s * loss.sqrt())
}

/// Segments a second over `LOSSES_EACH` losses, on a link so fast that only the losses limit the flow.
fn measure(loss: f64, round_trip_ms: u64) -> f64 {
    let link = wide(1_000_000_000, Duration::from_millis(round_trip_ms) / 2);
    let mut pair = Pair::new(1, &link, &LinkSettings { loss, ..link.clone() });
    let tcp = TcpSettings {
        window_receiver: 10_000,
        counting: Counting::Acknowledgements,
        timeout_min: TIMEOUT_MARGIN,
        acknowledgement_delay: Some(Duration::from_millis(100)),
        ..TcpSettings::modern()
    };
    let flow = pair.open(Instant::ZERO, &tcp, u64::MAX);
    let seconds = LOSSES_EACH / (loss * mathis(loss, round_trip_ms as f64 / 1e3));
    pair.run(Instant::from_nanos((seconds * 1e9) as u64));
    let record = pair.network.flow(flow).unwrap();
    record.response_bytes as f64 / f64::from(tcp.segment_bytes) / seconds
}

#[test]
fn throughput_follows_padhye_and_mathis_in_their_ranges() {
    let mut missed = Vec::new();
    let mut compared = 0;
    for loss in LOSSES {
        for round_trip_ms in ROUND_TRIPS_MS {
            let round_trip_s = round_trip_ms as f64 / 1e3;
            let measured = measure(loss, round_trip_ms);
            let timeout_s = round_trip_s + TIMEOUT_MARGIN.as_secs_f64();
            let formulas = [
                ("Padhye", padhye(loss, round_trip_s, timeout_s), round_trip_ms >= 50),
                ("Mathis", mathis(loss, round_trip_s), loss <= 0.01),
            ];
            for (formula, expected, in_range) in formulas {
                let ratio = measured / expected;
                println!(
                    "loss {loss}, round trip {round_trip_ms} ms, {formula}: {ratio:.3}{}",
                    if in_range { "" } else { " (out of range)" }
                );
                if in_range {
                    compared += 1;
                    if (ratio - 1.0).abs() > TOLERANCE {
                        missed.push(format!("loss {loss}, {round_trip_ms} ms, {formula}: ratio {ratio:.3}"));
                    }
                }
            }
        }
    }
    assert_eq!(compared, 18 + 20);
    assert!(missed.is_empty(), "{missed:#?}");
}
