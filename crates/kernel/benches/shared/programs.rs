//! The programs of `bpf/bench.bpf.c`, which only measurements use.

use libbpf_rs::{Object, ObjectBuilder};

/// All of them; `interface` is the one that `carry` sends by.
pub(crate) fn load(interface: u32) -> Object {
    let compiled = concat!(env!("OUT_DIR"), "/bench.o");
    let mut open = ObjectBuilder::default().open_file(compiled).expect("compiled with this");
    let mut way = open.maps_mut().find(|map| map.name() == ".rodata.way").expect("ours");
    way.initial_value_mut().expect("a constant").copy_from_slice(&interface.to_ne_bytes());
    open.load().expect("what loads the gate loads this")
}
