//! NEWS-F22: a server that runs out of memory, while the network is idle enough.

use super::plant::{AS_RUN, Mode, NEWS_MODES};
use super::runs::Stretch;
use super::testbed::{AMPLE_BITS_PER_S, TargetBottleneck, notes};
use super::testbed_runs::TestbedRuns;
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Rule, Shape};
use flashweir_sim::request::RunOutcome;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "NEWS-F22",
    title: "A server short of memory",
    paper: "Figure 22 and §8.3: 98 % of the memory in use, swapping, 20 % time out, 60 % of the link used and nothing \
            lost; NEWS finds it within about 80 s, admits 54/s, memory falls to 88 %, the fastest tenth rises from 158 \
            to 260 kb/s",
    run,
};

const MODES: [Mode; 4] = [Mode::None, Mode::Paper, Mode::Scoreboard, Mode::Repaired];

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let seeds = laboratory.options().seeds;
    let runs = TestbedRuns::on_testbed(laboratory, &MODES, seeds, |testbed| {
        testbed.bottleneck = TargetBottleneck::Memory
    })?;
    let (memory, fastest) = (runs.memory_percent(Stretch::Crowd), runs.fastest_rate_kbps(Stretch::Crowd));
    let (loss, bits_per_s) = (runs.loss_percent(), runs.response_bits_per_s());
    let used = |outcome: &RunOutcome| Some(bits_per_s(outcome)? / AMPLE_BITS_PER_S as f64 * 100.0);
    let (found, timed_out) = (runs.found_after_s(), runs.timed_out_percent());
    let none = [Mode::None];
    let near = |mode: &str, by| Rule::Near { mode: mode.to_owned(), by };
    let within = |mode: &str| Rule::Within { mode: mode.to_owned(), part: 0.1 };
    let rows = vec![
        runs.row("memory in the crowd, %", Some(98.0), near("none", 3.0), &none, &memory),
        runs.row("timed out, %", Some(20.0), near("none", 3.0), &none, &timed_out),
        runs.row("fastest tenth in the crowd, kb/s", Some(158.0), within("none"), &none, &fastest),
        runs.row("link used, %", Some(60.0), near("none", 3.0), &none, used),
        runs.row("response loss, %", Some(0.0), near("none", 0.1), &none, loss),
        runs.row("found after, s", Some(80.0), near(AS_RUN, 16.0), &NEWS_MODES, &found),
        runs.row("admitted with NEWS, /s", Some(54.0), within(AS_RUN), &NEWS_MODES, runs.admitted()),
        runs.row("memory with NEWS, %", Some(88.0), near(AS_RUN, 3.0), &NEWS_MODES, &memory),
        runs.row("fastest tenth with NEWS, kb/s", Some(260.0), within(AS_RUN), &NEWS_MODES, &fastest),
        runs.row(
            "fastest tenth before, kb/s",
            None,
            Rule::Reported,
            &none,
            runs.fastest_rate_kbps(Stretch::Quiet),
        ),
    ];
    let without = runs.seeds(Mode::None, &fastest);
    let before = runs.seeds(Mode::None, runs.fastest_rate_kbps(Stretch::Quiet));
    let mut shapes = vec![Shape::new(
        "without control the fastest tenth is slowed to three quarters or less",
        [without.over(&before).at_most(0.75)],
    )];
    for mode in [Mode::Scoreboard, Mode::Repaired] {
        let name = mode.name();
        shapes.extend([
            Shape::new(
                format!("{name} finds it within two intervals of the onset"),
                [runs.seeds(mode, &found).at_most(128.0).named("s")],
            ),
            Shape::new(
                format!("{name} brings memory to 95 % or less"),
                [runs.seeds(mode, &memory).at_most(95.0)],
            ),
            Shape::new(
                format!("{name}: the fastest tenth is at least 1.3 times as fast"),
                [runs.seeds(mode, &fastest).over(&without).at_least(1.3)],
            ),
        ]);
    }
    let mut notes = notes(laboratory.options(), seeds);
    notes.push(
        "The server is chosen by the rows without NEWS: 22 % of the requests hold their memory (200 kB) for 10 s, the others \
         for 30 ms, both longer as less of what they touch is in memory (13 times, were all of it on the disk); 70 % of \
         the 128 MB are in use in rest, which the memory with NEWS at 54/s was used for. The link has 4.3 Mb/s, of which \
         the same pages use the paper's 60 %, and room for 200 packets."
            .to_owned(),
    );
    notes.push(
        "Such a server has two states at the same load: once requests are slowed they stay longer and keep the memory \
         full, so it takes a ceiling well below what it could carry to bring it back."
            .to_owned(),
    );
    let plot = Plot {
        title: "Rate of the fastest tenth, server short of memory",
        x_label: "seconds",
        y_label: "kb/s",
        lines: MODES.map(|mode| (mode.name(), runs.fastest_rate_over_time(mode))).to_vec(),
        onset: Some(runs.onset_s() as f64),
    };
    plot.finding(rows, shapes, Claim::Shape, notes)
}
