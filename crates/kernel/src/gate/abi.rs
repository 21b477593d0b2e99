//! The layout of the gate's maps: `bpf/abi.h` in Rust.

use std::mem::size_of;
use std::net::{IpAddr, SocketAddr};

use flashweir_core::limits;

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

/// A value that is its bytes: a C structure of integers without padding.
///
/// # Safety
/// The type is `repr(C)`, consists of integers only and has no padding; every pattern of bits is a value of it.
pub(super) unsafe trait Plain: Copy + Default {}

/// The bytes of a value, for the kernel.
pub(super) fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: `Plain` has no padding, so all its bytes are initialised; the slice borrows the value.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// A value from the kernel's bytes.
///
/// # Panics
/// When there are too few: the map was loaded with another layout, which [`super::KernelGate::load`] refuses.
pub(super) fn value_of<T: Plain>(bytes: &[u8]) -> T {
    assert!(bytes.len() >= size_of::<T>(), "{} bytes are not enough", bytes.len());
    // SAFETY: every pattern of bits is a `Plain`, there are enough bytes, and they need no alignment.
    unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
}

/// An address of either family, IPv4 as IPv4-mapped IPv6.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Address(pub(super) [u8; 16]);

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        Self(match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        })
    }
}

/// Where a service listens.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Endpoint {
    address: Address,
    port: [u8; 2],
    zero: [u8; 6],
}

impl From<SocketAddr> for Endpoint {
    fn from(at: SocketAddr) -> Self {
        Self { address: at.ip().into(), port: at.port().to_be_bytes(), zero: [0; 6] }
    }
}

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

macro_rules! plain {
    ($($type:ty: $bytes:literal),+ $(,)?) => {$(
        const _: () = assert!(size_of::<$type>() == $bytes);
        // SAFETY: `repr(C)` of integers; the sizes, asserted above, are the sums of their fields', so nothing is
        // padding.
        unsafe impl Plain for $type {}
    )+};
}

plain! {
    u32: 4, u64: 8, Address: 16, Endpoint: 24, Network: 20, Ceiling: 16, Plan: 48, Control: 80, Answer: 520, Counts: 120,
}
