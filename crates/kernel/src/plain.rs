//! Values that the kernel's maps and user space both know as bytes.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// A value that is its bytes: a C structure of integers without padding.
///
/// # Safety
/// The type is `repr(C)`, consists of integers only and has no padding; every pattern of bits is a value of
/// it.
pub(crate) unsafe trait Plain: Copy + Default {}

/// The bytes of a value, for the kernel.
pub(crate) fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: `Plain` has no padding, so all its bytes are initialised; the slice borrows the value.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// A value from the kernel's bytes.
///
/// # Panics
/// When there are too few: the map has another layout, and its values another size, which a test would have
/// seen.
pub(crate) fn value_of<T: Plain>(bytes: &[u8]) -> T {
    assert!(bytes.len() >= size_of::<T>(), "{} bytes are not enough", bytes.len());
    // SAFETY: every pattern of bits is a `Plain`, there are enough bytes, and they need no alignment.
    unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
}

/// An address of either family, IPv4 as IPv4-mapped IPv6.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Address([u8; 16]);

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        Self(match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        })
    }
}

impl Address {
    /// The network of one subscriber: the address of IPv4, the /64 of IPv6. As `subscriber` in
    /// `bpf/gate.bpf.c`.
    pub(crate) fn subscriber(self) -> Self {
        let address = Ipv6Addr::from(self.0);
        let bits = if address.to_ipv4_mapped().is_some() { u128::MAX } else { !u128::from(u64::MAX) };
        Self(Ipv6Addr::from_bits(address.to_bits() & bits).octets())
    }
}

/// An address and a port: where a server listens.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Endpoint {
    address: Address,
    port: [u8; 2],
    zero: [u8; 6],
}

impl From<SocketAddr> for Endpoint {
    fn from(at: SocketAddr) -> Self {
        Self { address: at.ip().into(), port: at.port().to_be_bytes(), zero: [0; 6] }
    }
}

impl From<Endpoint> for SocketAddr {
    fn from(endpoint: Endpoint) -> Self {
        let address = Ipv6Addr::from(endpoint.address.0).to_canonical();
        Self::new(address, u16::from_be_bytes(endpoint.port))
    }
}

macro_rules! plain {
    ($($type:ty: $bytes:literal),+ $(,)?) => {$(
        const _: () = assert!(size_of::<$type>() == $bytes);
        // SAFETY: `repr(C)` of integers; the sizes, asserted above, are the sums of their fields', so nothing
        // is padding.
        unsafe impl $crate::plain::Plain for $type {}
    )+};
}
pub(crate) use plain;

plain! { u32: 4, u64: 8, Address: 16, Endpoint: 24 }
