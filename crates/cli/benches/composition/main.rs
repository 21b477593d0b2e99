//! The gateway's composition before other bottlenecks than a crowded origin, measured: a narrow link to the
//! clients, calm stretches of real days, thousands of new connections a second, a crowd through a sidecar
//! that is asked for less, surges of real days. `flashweir_load::trials` says what is run and how it is
//! judged.
//!
//! `make bench-composition` runs it. In the environment: PARTS, of `links calm connections nodes surges`;
//! ONLY, a word that the name of a link, a trace or a surge contains; ROUNDS; SECONDS, for which a link and
//! new connections are measured and which a calm stretch lasts; TRACES, the folder of the traces, without
//! which only a steady stretch is played. An hour and a half as they are. The link needs root: it is between
//! network namespaces.

mod calm;
#[path = "../common/mod.rs"]
mod common;
mod connections;
mod link;
mod nodes;
mod surge;
mod traces;

use common::stage::Stage;
use flashweir_load::trials::composition as judged;
use flashweir_testkit::number_from_environment;

const ROUNDS: u64 = 3;

fn main() {
    if !common::is_asked_to_measure() {
        return;
    }
    let rounds = number_from_environment("ROUNDS", ROUNDS).max(1) as usize;
    let text = |name| std::env::var_os(name).and_then(|text| text.into_string().ok());
    let parts = text("PARTS").unwrap_or_else(|| "links calm connections nodes surges".to_owned());
    let only = text("ONLY").unwrap_or_default();
    let has = |part| parts.split_whitespace().any(|word| word == part);
    // The first: afterwards this process is kept off the origin's core.
    if has("links") {
        println!("{}", judged::link::text(&link::run(rounds, &only)));
    }
    if !["calm", "connections", "nodes", "surges"].into_iter().any(has) {
        return;
    }
    let Some(stage) = Stage::new() else {
        eprintln!("not measured: the origin needs a core to itself, and this process may use only one");
        return;
    };
    println!("The origin has core {} to itself.\n", stage.origin_core());
    if has("calm") {
        println!("{}", judged::calm::text(&calm::run(&stage, &only)));
    }
    if has("connections") {
        println!("{}", judged::connections::text(&connections::run(&stage, rounds)));
    }
    if has("nodes") {
        println!("{}", judged::nodes::text(&nodes::run(&stage, rounds)));
    }
    if has("surges") {
        println!("{}", judged::surge::text(&surge::run(&stage, &only)));
    }
}
