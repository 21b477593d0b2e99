//! Safe wrappers over what only the kernel knows; the one crate that may use unsafe code.

mod tcp_info;

pub use tcp_info::{TcpInfo, tcp_info};
