//! Flashweir beside nothing, nginx, HAProxy and Envoy: the same crowds, origins and load generator through
//! each.
//!
//! `make compare` runs it and writes `docs/comparison.md` and `docs/comparison.json`. In the environment:
//! ROUNDS, SECONDS (length of a crowd) and OUT (where the two files go). What cannot be started is named and
//! its column says so.
//!
//! The origin has core 0 to itself; protection and load generator share the other cores. Each visit gets a
//! fresh origin and a fresh protection; the capacity by which it is judged is measured right before it.

mod machine;
mod progress;
mod protection;
mod stage;
mod table;
mod tuning;

use flashweir_load::trials::comparison::Scene;
use flashweir_testkit::number_from_environment;
use protection::Tools;
use stage::Stage;
use std::path::PathBuf;

/// Three rounds of crowds of this length take 20 minutes.
const CROWD_S: u64 = 5;
const ROUNDS: usize = 3;

fn main() {
    // `cargo test --benches` and `cargo bench -- --list` must not start servers.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("0 passed, 0 failed");
        return;
    }
    let rounds = number_from_environment("ROUNDS", ROUNDS).max(1);
    let crowd_s = number_from_environment("SECONDS", CROWD_S).max(3);
    let placement = machine::leave_core_0_to_the_origin();
    let stage = Stage::new(Tools::find());
    let contestants = tuning::contestants(&stage);
    let mut results = table::Results::new(&Scene::all(crowd_s), contestants.len());
    let mut progress = progress::Progress::new(rounds * results.cells());
    for round in 0..rounds {
        for place in results.order(round) {
            let (scene, contestant) = (results.scene(place), &contestants[place.column]);
            let Some(kind) = contestant.kind(scene.origin) else { continue };
            progress.begin(round, scene, &contestant.name);
            match stage.visit(&kind, scene) {
                Ok(visit) => {
                    progress.done(&visit);
                    results.add(place, visit);
                }
                // One round less for this cell; the others are not to be lost.
                Err(why) => eprintln!("not measured: {why}"),
            }
        }
    }
    let comparison =
        results.comparison(contestants, machine::description(), placement, &stage, rounds, crowd_s);
    let page = comparison.page();
    let out = std::env::var_os("OUT").map_or_else(|| machine::repository().join("docs"), PathBuf::from);
    table::write(&out, &comparison, &page);
    println!("{page}\nWritten to {}", out.display());
}
