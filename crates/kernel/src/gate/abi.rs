//! The layout of the gate's maps: `bpf/abi.h` in Rust.

use std::net::IpAddr;

use flashweir_core::limits;

use crate::plain::{Address, plain};

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

/// A preferred network.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Network {
    bits: u32,
    address: Address,
}

impl Network {
    /// As key and value of the map, which says of which family the network is.
    pub(super) fn of(address: IpAddr, bits: u8) -> (Self, u32) {
        let before_ipv4 = if address.is_ipv4() { 96 } else { 0 };
        let network = Self { bits: u32::from(bits) + before_ipv4, address: address.into() };
        (network, u32::from(address.is_ipv6()))
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
    pub(super) ceilings: [Ceiling; 2],
    pub(super) at_ns: u64,
    pub(super) mode: u32,
    pub(super) flags: u32,
    pub(super) charged_to: u32,
    pub(super) zero: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Control {
    pub(super) beat_ns: u64,
    pub(super) generation: u64,
    pub(super) test_now_ns: u64,
    pub(super) flags: u32,
    pub(super) key_index: u32,
    pub(super) answer_keys: [[u64; 2]; 2],
    pub(super) attempts_key: [u64; 2],
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

/// What one processor counted for a service.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts(pub(super) [u64; 15]);

plain! {
    Network: 20, Ceiling: 16, Plan: 56, Control: 80, Answer: 520, Counts: 120,
}
