//! What a test run of a program costs by itself (`nothing` and `nothing_at_tc` of `bpf/bench.bpf.c`), to be taken off what
//! a run of ours costs.

use libbpf_rs::{MapCore as _, Object, ObjectBuilder, ProgramInput};

/// Runs in a row, and rows of which the median counts.
const TIMES: u32 = 200_000;
const ROWS: usize = 9;

/// Nanoseconds of an empty run on this frame: for a program of XDP, and for one of tc.
pub(crate) fn of_runs(frame: &[u8]) -> [u128; 2] {
    let object = load(0);
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

/// The programs for measurements; `interface` is the one that `carry` sends by.
pub(crate) fn load(interface: u32) -> Object {
    let compiled = concat!(env!("OUT_DIR"), "/bench.o");
    let mut open = ObjectBuilder::default().open_file(compiled).expect("compiled with this");
    let mut way = open.maps_mut().find(|map| map.name() == ".rodata.way").expect("ours");
    way.initial_value_mut().expect("a constant").copy_from_slice(&interface.to_ne_bytes());
    open.load().expect("what loads the gate loads this")
}
