//! Cost of the observer: nanoseconds per packet beside the gate's, a reading and memory at a million flows,
//! and the throughput of a stream that passes both.

mod in_place;
mod packets;
#[path = "../shared/programs.rs"]
mod programs;
mod reading;
mod stream;
mod zero;

use flashweir_kernel::LoadError;
use flashweir_kernel::observe::Observer;

/// All parts, or those that are named (`cargo bench ... -- stream`).
fn main() {
    let parts: [(&str, fn()); 3] =
        [("packets", packets::measure), ("reading", reading::measure), ("stream", stream::measure)];
    let named = |part: &str| std::env::args().any(|argument| argument == part);
    let names_one = parts.iter().any(|(part, _)| named(part));
    for (part, measure) in parts {
        if !names_one || named(part) {
            measure();
        }
    }
}

/// An observer, or a line that says why there is none.
fn load(flows: u32) -> Option<Observer> {
    Observer::load(flows).map_err(|error: LoadError| println!("  skipped: {error}")).ok()
}

fn median<T: Copy + PartialOrd>(mut values: Vec<T>) -> T {
    values.sort_by(|one, other| one.partial_cmp(other).expect("numbers"));
    values[values.len() / 2]
}
