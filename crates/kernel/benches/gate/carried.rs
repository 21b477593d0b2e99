//! Frames as the driver of a network card with native XDP hands them to a program: pages, and no socket
//! buffers.
//!
//! Between a pair of interfaces a sender's socket makes a socket buffer of each frame, which is then copied
//! into a page for the program; a network card writes it into such a page itself. Of the server's thread
//! under a flood of requests that are answered, perf finds 40 % in that copy, 20 % in freeing the sender's
//! buffers, and 35 % in the gate (Linux 6.18). So the kernel is asked to send pages from a program
//! (BPF_F_TEST_XDP_LIVE_FRAMES), which arrive at the other end as they are, and so do those that the gate
//! sends back.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use libbpf_rs::libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES;
use libbpf_rs::{MapCore as _, MapFlags, Object, ProgramInput};

use crate::arena::{index_of, pin};
use crate::programs;

/// As in `bpf/bench.bpf.c`.
const FRAMES: usize = 16_384;
const FRAME_BYTES: usize = 128;
/// Frames of one call: some milliseconds.
const AT_ONCE: u32 = 16_384;

/// A sender on this thread's namespace, and the program that ends what comes back.
pub(crate) struct Carrier {
    object: Object,
}

impl Carrier {
    /// Sends by this interface, over and over, these frames: [`FRAMES`] of them.
    pub(crate) fn new(interface: &str, frames: &[Vec<u8>]) -> Self {
        assert_eq!(frames.len(), FRAMES, "the table is always full");
        let object = programs::load(index_of(interface));
        let map = object.maps().find(|map| map.name() == "frames").expect("ours");
        for (index, frame) in (0u32..).zip(frames) {
            let mut padded = frame.clone();
            assert!(padded.len() <= FRAME_BYTES, "{} bytes", padded.len());
            padded.resize(FRAME_BYTES, 0);
            map.update(&index.to_ne_bytes(), &padded, MapFlags::ANY).expect("room");
        }
        Self { object }
    }

    /// The program that drops every frame.
    pub(crate) fn end(&self) -> OwnedFd {
        let program = self.object.progs_mut().find(|program| program.name() == "discard").expect("ours");
        program.as_fd().try_clone_to_owned().expect("a descriptor")
    }

    /// Sends from the second processor, for this time.
    pub(crate) fn send(&self, during: Duration) {
        pin(0, 1);
        let program = self.object.progs_mut().find(|program| program.name() == "carry").expect("ours");
        let begin = Instant::now();
        while begin.elapsed() < during {
            let input = ProgramInput {
                data_in: Some(&[0; FRAME_BYTES]),
                repeat: AT_ONCE,
                flags: BPF_F_TEST_XDP_LIVE_FRAMES,
                ..ProgramInput::default()
            };
            program.test_run(input).expect("a kernel that sends frames so: Linux 5.18");
        }
    }
}
