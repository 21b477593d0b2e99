//! Cost of the programs to a stream where they stand, by the kernel's own books of their running time
//! (`BPF_STATS_RUN_TIME` of bpf(2); keeping the books is part of the times they show, some 20 ns each time).
//!
//! Other work of the machine makes a stream slower, and throughput uncertain; it hardly touches these.

use std::collections::HashMap;
use std::os::fd::{FromRawFd as _, OwnedFd};

use libbpf_rs::libbpf_sys;
use libbpf_rs::query::ProgInfoIter;

const PROGRAMS: [&str; 3] = ["flashweir_gate", "flashweir_in", "flashweir_out"];

/// Books that the kernel keeps until this is dropped.
pub(crate) struct Books {
    _keeping: OwnedFd,
    before: HashMap<u32, (u64, u64)>,
    process_ns: u64,
}

impl Books {
    pub(crate) fn open() -> Self {
        // SAFETY: no pointers are involved.
        let descriptor = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        assert!(descriptor >= 0, "the kernel keeps no books: {descriptor}");
        // SAFETY: the kernel has just opened this descriptor for this process; no other owner exists.
        let keeping = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let before =
            ProgInfoIter::default().map(|info| (info.id, (info.run_cnt, info.run_time_ns))).collect();
        Self { _keeping: keeping, before, process_ns: process_ns() }
    }

    /// Shows what each program ran since, and which part of this process's time all of them took.
    pub(crate) fn show(&self) {
        let process_ns = process_ns() - self.process_ns;
        let mut whole_ns = 0;
        for name in PROGRAMS {
            let named = ProgInfoIter::default().filter(|info| info.name == name);
            let since = named.map(|info| {
                let (runs, time_ns) = self.before.get(&info.id).copied().unwrap_or_default();
                (info.run_cnt - runs, info.run_time_ns - time_ns)
            });
            // Other processes may run programs of the same name; the stream's have by far the most packets.
            let Some((runs @ 1.., time_ns)) = since.max() else { continue };
            whole_ns += time_ns;
            println!("    {:>7}  ns per packet in {name}, {runs} packets", time_ns / runs);
        }
        let share = 100.0 * whole_ns as f64 / process_ns as f64;
        println!("    {share:>6.2}%  of the processor time of both ends is theirs");
    }
}

/// Processor time that this process has had.
pub(crate) fn process_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a structure that outlives the call, and every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
