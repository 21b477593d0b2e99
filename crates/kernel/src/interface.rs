//! Network interfaces, and programs bound to them.

use std::ffi::CString;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use libbpf_rs::libbpf_sys;

/// The number of an interface of this network namespace.
pub(crate) fn index_of(interface: &str) -> Option<i32> {
    let name = CString::new(interface).ok()?;
    // SAFETY: the pointer is to a string that ends in zero and outlives the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    i32::try_from(index).ok().filter(|index| *index != 0)
}

/// The name of an interface's driver, as `ethtool -i` shows it.
///
/// # Errors
/// The kernel's error; not every interface has a driver that names itself.
pub(crate) fn driver_of(interface: &str) -> io::Result<String> {
    // `struct ethtool_drvinfo` of linux/ethtool.h; the last part is versions and counts.
    #[repr(C)]
    struct DriverInfo {
        command: u32,
        driver: [u8; 32],
        rest: [u8; 160],
    }
    const ETHTOOL_GDRVINFO: u32 = 3;
    let mut info = DriverInfo { command: ETHTOOL_GDRVINFO, driver: [0; 32], rest: [0; 160] };
    // SAFETY: integers and a pointer, for all of which zeros are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero, as the kernel wants it; no interface has a longer name.
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(interface.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    // Any socket of this namespace will do.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: both structures outlive the call and have the layout of this request.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    let name = info.driver.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Binds a program to an interface by a link, which lasts as long as its descriptor. Where, and with which
/// flags, is libbpf's.
///
/// # Errors
/// The kernel's error.
pub(crate) fn link(
    program: &OwnedFd,
    interface: i32,
    at: libbpf_sys::bpf_attach_type,
    flags: u32,
) -> io::Result<OwnedFd> {
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
        flags,
        ..Default::default()
    };
    // SAFETY: the descriptor is open, the options outlive the call and say their own size.
    let link = unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), interface, at, &raw const options) };
    if link < 0 {
        return Err(io::Error::from_raw_os_error(-link));
    }
    // SAFETY: the kernel has just opened this descriptor for this process; no other owner exists.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}
