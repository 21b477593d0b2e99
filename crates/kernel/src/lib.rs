//! Safe wrappers over what only the kernel knows, and programs that run inside it; the one crate that may use
//! unsafe code.
//!
//! The programs (feature `bpf`) are C, in `bpf/`; the build compiles them and the library carries them along.

#[cfg(feature = "bpf")]
pub mod account;
#[cfg(feature = "bpf")]
mod clock;
#[cfg(feature = "bpf")]
pub mod gate;
#[cfg(feature = "bpf")]
mod interface;
mod late_port;
#[cfg(feature = "bpf")]
pub mod link;
#[cfg(feature = "bpf")]
mod map;
mod memory;
#[cfg(feature = "bpf")]
pub mod observe;
#[cfg(feature = "bpf")]
mod plain;
#[cfg(feature = "bpf")]
mod program;
mod service_manager;
#[cfg(feature = "bpf")]
mod signals;
mod tcp_info;

pub use late_port::choose_port_late;
pub use memory::return_free_memory;
#[cfg(feature = "bpf")]
pub use program::{LoadError, PacketRun};
pub use service_manager::{inherited_listeners, notify_ready, notify_stopping};
#[cfg(feature = "bpf")]
pub use signals::without_signals;
pub use tcp_info::{TcpInfo, tcp_info};
