//! Safe wrappers over what only the kernel knows; the one crate that may use unsafe code.

mod late_port;
mod tcp_info;

pub use late_port::choose_port_late;
pub use tcp_info::{TcpInfo, tcp_info};
