//! NEWS-F22 on the testbed: a server whose pages do not fit into its memory.

use super::network_limited::{gave_up_percent, lost_percent, per_second, protections, settled};
use super::record::Record;
use super::results::Results;
use super::scale;
use super::scene::{Bottleneck, Scene, Server, TestbedRun};
use super::scope::Scope;
use super::trial::Trial;
use crate::experiments::finding::Claim;
use crate::experiments::{ExperimentError, Finding, Shape, Subject};
use std::ops::Range;

pub(super) const TRIAL: Trial = Trial {
    subject: Subject {
        id: "NEWS-F22",
        title: "A server short of memory",
        paper: "Figure 22 and §8.3: the server swaps at 98 % of its memory, no packet is lost, 20 % time out; with NEWS found after 80 s, 54/s \
                let in, 88 % of the memory used, and the fastest tenth at 260 instead of 158 kb/s",
    },
    runs,
    judge,
};

/// Half of the pages fit into the memory; the disk gives what 70 requests/s of the paper's need, if half of
/// them find their page in memory.
const SERVER: Server = Server::PagesShortOfMemory {
    memory_bytes: 24 << 20,
    page_bytes: 8 << 10,
    pages: 4_000,
    disk_bytes_per_s: 1_500_000,
};

fn scene(scope: &Scope) -> Scene {
    let scene = Scene::network_limited(scope);
    // The crowd's pages use some 60 % of it.
    let bottleneck = Bottleneck { bits_per_s: 65_000_000, buffer_bytes: 1_000_000 };
    Scene { bottleneck, server: SERVER, ..scene }
}

fn runs(scope: &Scope, _: &Results) -> Vec<TestbedRun> {
    scene(scope).runs(scope, protections())
}

fn judge(scope: &Scope, results: &Results) -> Result<Finding, ExperimentError> {
    let scene = &scene(scope);
    let ours = results.in_scene(scene);
    let all = protections();
    let (none, news) = (&all[..1], &all[1..]);
    let settled = settled(scene, scale::INTERVAL_S);
    let gave_up = gave_up_percent(settled.clone());
    let lost = lost_percent(settled.clone());
    let fastest = |record: &Record| record.fastest_kbps(settled.clone());
    let found = |record: &Record| record.found_after_s(scene.onset_s());
    let good = per_second(settled.clone(), |it| it.good);
    let rows = vec![
        ours.row("without NEWS: packets lost, %", Some(0.0), none, &lost),
        ours.row("without NEWS: timed out, %", Some(20.0), none, &gave_up),
        ours.row("without NEWS: fastest tenth, kb/s", Some(158.0), none, fastest),
        ours.row("found after, s", Some(80.0 / scale::TIMES), news, found),
        ours.row("with NEWS: let in/s", Some(54.0), news, per_second(settled.clone(), |it| it.admitted)),
        ours.row("with NEWS: timed out, %", None, news, &gave_up),
        ours.row("with NEWS: fastest tenth, kb/s", Some(260.0), news, fastest),
        ours.row("answered in time/s", None, &all, &good),
        ours.row("read from the disk in the crowd, MB/s of ours", None, &all, disk_mb_per_s(settled.clone())),
    ];
    let without = |value: &dyn Fn(&Record) -> Option<f64>| ours.seeds(&none[0], value);
    let mut shapes = vec![
        Shape::new("at most one packet of a hundred is lost", [without(&lost).at_most(1.0).named("%")]),
        Shape::new(
            "without NEWS a tenth of the people or more time out",
            [without(&gave_up).at_least(10.0).named("%")],
        ),
    ];
    for protection in news {
        let name = protection.name();
        shapes.push(Shape::new(
            format!("{name} finds the crowd within two intervals"),
            [ours.seeds(protection, found).at_most(2.0 * scale::INTERVAL_S as f64).named("s")],
        ));
        shapes.push(Shape::new(
            format!("with {name} the fastest tenth is at least 1.3 times as fast as without"),
            [ours.seeds(protection, fastest).over(&without(&fastest)).at_least(1.3)],
        ));
        shapes.push(Shape::new(
            format!("with {name} at least as much is answered in time as without"),
            [ours.seeds(protection, &good).over(&without(&good)).at_least(1.0)],
        ));
    }
    let mut notes = scale::notes();
    notes.push(
        "The paper's server had too little memory for its requests and swapped. Ours has a control group whose memory holds half of its \
         4,000 pages of 8 kB, and a disk of 1.5 MB/s: a page that was reclaimed is read again. How much of the memory is used tells nothing \
         there, as a page cache is always full; so in place of the paper's 98 and 88 % stands what is read from the disk."
            .to_owned(),
    );
    notes.extend(ours.doubts());
    ours.fastest_tenth(&all).finding(rows, shapes, Claim::Shape, notes)
}

fn disk_mb_per_s(within: Range<u64>) -> impl Fn(&Record) -> Option<f64> {
    move |record| Some(record.per_second(within.clone(), |it| it.disk_bytes)? / 1e6)
}
