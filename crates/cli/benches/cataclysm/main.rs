//! Figure 3 of Cataclysm with real servers: three processor-bound ones, of which one is PHP-FPM behind nginx,
//! behind the gateway with gold, silver and bronze.
//!
//! `make cataclysm` runs it and writes `docs/reproduction-real.md` and its figures. In the environment:
//! SPEED_UP (how many of the paper's 480 seconds pass in one of ours) and OUT (where the page goes).
//!
//! The three servers share core 0; gateway and load generator have the other cores.

#[path = "../comparison/machine.rs"]
mod machine;
mod servers;

use flashweir_load::LoadResult;
use flashweir_load::trials::cataclysm::{Crowd, Facts, Finding};
use flashweir_testkit::{Flashweir, Gateway, GatewayBuilder, Load, number_from_environment, skip};
use servers::Servers;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// 96 seconds: slow enough for a second of ours to be short beside the paper's stretches.
const SPEED_UP: f64 = 5.0;
/// The shortest stretch of the figure that is judged, 10 s, is then a whole second.
const SPEED_UP_MOST: f64 = 10.0;
/// The generator's own end, after the last person has gone.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
const SOURCES: &str = "4000";

fn main() {
    // `cargo test --benches` and `cargo bench -- --list` must not start servers.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("0 passed, 0 failed");
        return;
    }
    let speed_up = number_from_environment("SPEED_UP", SPEED_UP).clamp(1.0, SPEED_UP_MOST);
    machine::leave_core_0_to_the_origin();
    let binary = Flashweir::new(env!("CARGO_BIN_EXE_flashweir"));
    let Some(servers) = Servers::start(&binary) else {
        skip("cataclysm", "without PHP-FPM and nginx there is no real application server");
        return;
    };
    let capacity_rps = servers.capacity_together_rps();
    let crowd = Crowd { speed_up, capacity_rps };
    eprintln!("{capacity_rps:.1} requests/s together; the crowd takes {} s", crowd.length_s());
    let gateway = gateway(&binary, &servers);
    let load = send(&binary, &gateway, &crowd);
    let facts = Facts {
        crowd,
        servers: servers.capacities_alone_rps(),
        capacity_after_rps: servers.capacity_together_rps(),
        machine: machine::description(),
    };
    let finding = Finding::of(&load, facts).expect("a chart of a load's result");
    write(&finding);
}

/// Its defaults, but for what it stands before and who is worth what.
fn gateway(binary: &Flashweir, servers: &Servers) -> Gateway {
    let class = |name: &str, revenue: u32| {
        format!("{{ name = \"{name}\", revenue = {revenue}, match = {{ header = \"x-class: {name}\" }} }}")
    };
    let classes = [class("gold", 9), class("silver", 3), class("bronze", 1)].join(", ");
    let urls = servers.urls();
    let builder = GatewayBuilder::new(binary).upstreams(urls.iter().map(String::as_str));
    builder.set("class", &format!("[{classes}]")).start()
}

fn send(binary: &Flashweir, gateway: &Gateway, crowd: &Crowd) -> LoadResult {
    let classes = gateway.directory().join("classes.toml");
    fs::write(&classes, crowd.classes()).expect("a writable directory");
    let classes = classes.to_str().expect("a temporary directory with a plain name");
    let url = format!("http://{}/", gateway.address());
    let load = Load::start(binary, &url, &["--classes", classes, "--sources", SOURCES]);
    let result = load.finish(Duration::from_secs(crowd.length_s()) + ENDS_WITHIN);
    serde_json::from_value(result).expect("the generator of this build writes what this build reads")
}

fn write(finding: &Finding) {
    let out = std::env::var_os("OUT").map_or_else(|| machine::repository().join("docs"), PathBuf::from);
    fs::create_dir_all(out.join("figures")).expect("a directory that can be made");
    let write = |name: &str, text: &str| fs::write(out.join(name), text).expect("a writable directory");
    let page = finding.page("figures");
    write("reproduction-real.md", &page);
    write("figures/cat-f3-real.csv", &finding.csv);
    write("figures/cat-f3-real.svg", &finding.figure.standalone().expect("a figure that was drawn"));
    println!("{page}\nWritten to {}", out.display());
}
