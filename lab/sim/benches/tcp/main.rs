//! A long flow of Linux's own TCP beside the simulated one, at the same rate and buffer.
//!
//! The real one runs between network namespaces, through a token bucket, in two ways: with what the simulator
//! has (Reno, NewReno's recovery, delayed acknowledgements), which is what the ratios compare, and as Linux
//! ships Reno, with SACK and all, to show what the simulator leaves out. Time begins with the first SYN: the
//! whole time includes slow start. Bytes count once they are in order: the end of a long recovery can bring
//! more than the link carries in the meantime.
//!
//! Medians over rounds. It needs root, and a quiet machine for the fast links: a propagation delay is kept by
//! threads here. `make bench-tcp` runs it; ROUNDS and SECONDS in the environment change its length, and
//! numbers on the command line leave out other rates, Mb/s.

mod point;
mod real;
mod simulated;

use flashweir_testkit::number_from_environment;
use std::time::Duration;

use point::{Flow, Point};
use real::Stack;

/// Maximum relative difference between the simulated goodput and the real one to count as the same.
const TOLERANCE: f64 = 0.15;

fn main() {
    // `cargo test --benches` and `cargo bench -- --list` must not make networks.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("0 passed, 0 failed");
        return;
    }
    let rounds = number_from_environment("ROUNDS", 3);
    let length = Duration::from_secs(number_from_environment("SECONDS", 10));
    println!("{rounds} rounds of {} s; goodput in Mb/s, buffers and queues in packets", length.as_secs());
    println!("{HEADINGS}");
    let mut ratios = Vec::new();
    for point in point::all().into_iter().filter(is_asked_for) {
        let simulated = simulated::run(point, length).expect("a network within its bounds");
        let Some(plain) = measured(point, Stack::Plain, rounds, length) else { return };
        let Some(shipped) = measured(point, Stack::Shipped, 1, length) else { return };
        ratios.push(print_row(point, &simulated, &plain, &shipped));
    }
    if ratios.is_empty() {
        return;
    }
    println!("\nsimulated over real goodput");
    let titles = ["whole time", "later half", "later half, over Reno as shipped"];
    for (index, title) in titles.into_iter().enumerate() {
        print_summary(title, ratios.iter().map(|row| row[index]).collect());
    }
}

fn is_asked_for(point: &Point) -> bool {
    let mut rates = std::env::args().filter_map(|argument| argument.parse::<u64>().ok()).peekable();
    rates.peek().is_none() || rates.any(|rate| rate == point.rate_mbit_per_s)
}

const HEADINGS: &str = concat!(
    "\n rate buffer  RTT | whole time                           | later half           ",
    "| sent again  | dropped     | mean queue  | shipped: later\n",
    " Mb/s          ms |   real              simulated  ratio |   real    sim  ratio ",
    "|  real   sim |  real   sim |  real   sim |   real  ratio"
);

/// Runs `rounds` flows one after another; `None` after a line that says what the machine lacks.
fn measured(point: Point, stack: Stack, rounds: usize, length: Duration) -> Option<Vec<Flow>> {
    (0..rounds.max(1)).map(|_| real::run(point, stack, length)).collect()
}

/// The ratios of simulated to real goodput: whole time, later half, later half of what is shipped.
fn print_row(point: Point, simulated: &Flow, plain: &[Flow], shipped: &[Flow]) -> [f64; 3] {
    let [least, goodput, most] = spread(plain, |flow| flow.goodput_bits_per_s / 1e6);
    let later = median(plain, |flow| flow.later_bits_per_s / 1e6);
    let sent_again = median(plain, |flow| flow.retransmissions as f64);
    let dropped = median(plain, |flow| flow.dropped as f64);
    let waiting = median(plain, |flow| flow.waiting);
    let shipped = median(shipped, |flow| flow.later_bits_per_s / 1e6);
    let Flow { goodput_bits_per_s, later_bits_per_s, .. } = *simulated;
    let [whole_simulated, later_simulated] = [goodput_bits_per_s, later_bits_per_s].map(|rate| rate / 1e6);
    let ratios = [whole_simulated / goodput, later_simulated / later, later_simulated / shipped];
    println!(
        "{:>5} {:>6} {:>4} | {goodput:>6.2} [{least:>5.2}–{most:>5.2}] {whole_simulated:>8.2} {:>6.2} \
         | {later:>6.2} {later_simulated:>6.2} {:>6.2} | {sent_again:>5.0} {:>5} | {dropped:>5.0} {:>5} \
         | {waiting:>5.1} {:>5.1} | {shipped:>6.2} {:>6.2}",
        point.rate_mbit_per_s,
        point.buffer_packets,
        point.round_trip_ms,
        ratios[0],
        ratios[1],
        simulated.retransmissions,
        simulated.dropped,
        simulated.waiting,
        ratios[2],
    );
    ratios
}

fn print_summary(what: &str, mut ratios: Vec<f64>) {
    let close = ratios.iter().filter(|ratio| (*ratio - 1.0).abs() <= TOLERANCE).count();
    ratios.sort_by(f64::total_cmp);
    println!(
        "{what}: median {:.2}, {:.2} to {:.2}; {close} of {} within {:.0} %",
        ratios[ratios.len() / 2],
        ratios[0],
        ratios[ratios.len() - 1],
        ratios.len(),
        TOLERANCE * 100.0
    );
}

fn median(flows: &[Flow], value: impl Fn(&Flow) -> f64) -> f64 {
    spread(flows, value)[1]
}

/// The smallest, the median and the largest.
fn spread(flows: &[Flow], value: impl Fn(&Flow) -> f64) -> [f64; 3] {
    let mut values: Vec<f64> = flows.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    [values[0], values[values.len() / 2], values[values.len() - 1]]
}
