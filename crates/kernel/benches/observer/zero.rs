//! Cost of a test run of a program by itself (`nothing` and `nothing_at_tc` of `bpf/bench.bpf.c`), to be
//! taken off what a run of ours costs.

use libbpf_rs::ProgramInput;

use crate::programs;

/// Runs in a row, and rows of which the median counts.
const TIMES: u32 = 200_000;
const ROWS: usize = 9;

/// Nanoseconds of an empty run on this frame: for a program of XDP, and for one of tc.
pub(crate) fn of_runs(frame: &[u8]) -> [u128; 2] {
    let object = programs::load(0);
    ["nothing", "nothing_at_tc"].map(|name| {
        let program = object.progs_mut().find(|program| program.name() == name).expect("ours");
        let row = |_| {
            let input = ProgramInput { data_in: Some(frame), repeat: TIMES, ..ProgramInput::default() };
            program.test_run(input).expect("a run").duration.as_nanos()
        };
        let mut rows: Vec<_> = (0..ROWS).map(row).collect();
        rows.sort_unstable();
        rows[ROWS / 2]
    })
}
