//! The packet level under people, gate and server: each try is a TCP connection through links with buffers.
//! The consequences for people and gate are with [`PacketNetwork`].

mod build;
mod check;
mod description;
mod error;
mod outcome;
mod series;
mod under_way;

pub use description::{
    ClassPath, ClientGroup, DatagramSource, NetworkModel, PacketNetwork, RouterPlace, Transfer, Wire,
};
pub use outcome::{
    ConnectionBin, DatagramBin, DatagramOutcome, LinkBin, PacketOutcome, RouterOutcome, TransferOutcome,
    WireOutcome,
};
pub(super) use under_way::{Packets, REFUSAL_BYTES, rate_bytes_per_s};
