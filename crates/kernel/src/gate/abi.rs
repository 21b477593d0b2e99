//! The layout of the gate's maps: `bpf/abi.h` in Rust.

use std::net::IpAddr;

use flashweir_core::limits;

use crate::plain::{Address, plain};

/// Tiers of a service; `TIERS` there.
pub(super) const TIERS: usize = limits::KERNEL_TIERS;
const _: () = assert!(TIERS.is_power_of_two(), "a rank is bounded by a mask");
/// Values of the mark of a packet; `MARKS` there.
pub(super) const MARKS: usize = 64;
/// Position of the port's rank in the value of an endpoint, bits.
const PLACE_RANK_SHIFT: u32 = 16;
/// Services in the kernel; `SERVICES` there.
pub(super) const SERVICES: usize = limits::KERNEL_SERVICES;
/// Responses ready for each service, which differ in `Retry-After`.
pub(super) const ANSWER_VARIANTS: usize = 16;
/// A response, head and body.
pub(super) const ANSWER_BYTES: usize = 512;

pub(super) const MODE_PASS: u32 = 0;
pub(super) const MODE_DROP: u32 = 1;
pub(super) const MODE_RESET: u32 = 2;
pub(super) const MODE_ANSWER: u32 = 3;

pub(super) const SERVICE_SHADOW: u32 = 1;
pub(super) const SERVICE_TLS: u32 = 2;

pub(super) const CONTROL_FAIL_CLOSED: u32 = 1;
pub(super) const CONTROL_PREFERS: u32 = 2;
pub(super) const CONTROL_PURGES: u32 = 4;
pub(super) const CONTROL_RANKS_NETWORKS: u32 = 8;

/// The value of an endpoint: a service, and the rank of the port, if it has one.
pub(super) fn place(service: u32, rank: Option<u8>) -> u32 {
    rank.map_or(0, |rank| u32::from(rank) + 1) << PLACE_RANK_SHIFT | service
}

/// A network.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Network {
    bits: u32,
    address: Address,
}

impl Network {
    /// As key and value of a map, which says the network's rank and of which family it is.
    pub(super) fn of(address: IpAddr, bits: u8, rank: u8) -> (Self, u32) {
        let before_ipv4 = if address.is_ipv4() { 96 } else { 0 };
        let network = Self { bits: u32::from(bits) + before_ipv4, address: address.into() };
        (network, u32::from(rank) << 1 | u32::from(address.is_ipv6()))
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ceiling {
    pub(super) rate_milli: u64,
    pub(super) burst: u32,
    pub(super) limited: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plan {
    pub(super) preferred: Ceiling,
    pub(super) tiers: [Ceiling; TIERS],
    pub(super) at_ns: u64,
    pub(super) mode: u32,
    pub(super) flags: u32,
    pub(super) charged_to: u32,
    pub(super) zero: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    pub(super) beat_ns: u64,
    pub(super) generation: u64,
    pub(super) test_now_ns: u64,
    pub(super) flags: u32,
    pub(super) key_index: u32,
    pub(super) answer_keys: [[u64; 2]; 2],
    pub(super) attempts_key: [u64; 2],
    pub(super) default_rank: u32,
    pub(super) zero: u32,
    pub(super) mark_ranks: [u8; MARKS],
}

impl Default for Control {
    fn default() -> Self {
        Self {
            beat_ns: 0,
            generation: 0,
            test_now_ns: 0,
            flags: 0,
            key_index: 0,
            answer_keys: [[0; 2]; 2],
            attempts_key: [0; 2],
            default_rank: TIERS as u32 - 1,
            zero: 0,
            mark_ranks: [0; MARKS],
        }
    }
}

/// A response ready to send.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) whole_bytes: u16,
    pub(super) head_bytes: u16,
    pub(super) whole_sum: u16,
    pub(super) head_sum: u16,
    pub(super) bytes: [u8; ANSWER_BYTES],
}

impl Default for Answer {
    fn default() -> Self {
        Self { whole_bytes: 0, head_bytes: 0, whole_sum: 0, head_sum: 0, bytes: [0; ANSWER_BYTES] }
    }
}

/// Counts of one processor for a service.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) of_service: [u64; 15],
    /// Offered and admitted of each rank.
    pub(super) of_tiers: [[u64; 2]; TIERS],
}

plain! {
    Network: 20, Ceiling: 16, Plan: 168, Control: 152, Answer: 520, Counts: 248,
}
