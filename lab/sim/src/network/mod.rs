//! Packet level: links with buffers and disciplines, TCP, sources with and without feedback, and stages that
//! watch links.
//!
//! A [`Network`] is a plain value. Its owner builds it, opens flows, and calls [`Network::next`], which runs
//! events until something happens that the owner must know: a request to answer, a flow's end, a wake-up.
//! Gates and meters sit on watched links as a [`Stage`]. A run depends on the calls and the seed alone.
//!
//! ```
//! use flashweir_core::{Duration, Instant};
//! use flashweir_sim::network::{
//!     Buffer, FlowSettings, Happening, LinkSettings, Network, NoStage, Response, TcpSettings,
//! };
//!
//! let mut network = Network::new(1);
//! let (client, server) = (network.add_node()?, network.add_node()?);
//! let wire = LinkSettings::drop_tail(10_000_000, Duration::from_millis(20), Buffer::Packets(50));
//! network.add_wire(client, server, &wire)?;
//! let route = network.add_route(client, server)?;
//! let tcp = network.add_tcp(TcpSettings::modern())?;
//! network.open(
//!     Instant::ZERO,
//!     FlowSettings { route, tcp, request_bytes: 300, response: Response::Bytes(10_000), token: 7 },
//! )?;
//! let Some((_, Happening::Ended(record))) = network.next(&mut NoStage, Instant::from_secs(10))? else {
//!     panic!("the response arrives within ten seconds")
//! };
//! assert_eq!((record.token, record.response_bytes), (7, 10_000));
//! // Two round trips of 40 ms, and seven full packets at 10 Mb/s.
//! assert!((80..100).contains(&record.duration().unwrap_or_default().as_millis()));
//! # Ok::<(), flashweir_sim::network::NetworkError>(())
//! ```

mod connection;
mod datagrams;
mod discipline;
mod error;
mod event;
mod feedback;
mod flows;
mod link;
mod packet;
mod record;
mod run;
mod stage;
mod tcp;
mod topology;
mod world;
mod world_checks;

pub use datagrams::{DatagramBooks, DatagramSettings, SourceId};
pub use discipline::{
    Counter, Discipline, DisciplineStatus, PublishedSettings, PurgeSettings, Red, Rem, SurplusUnit,
};
pub use error::NetworkError;
pub use event::Happening;
pub use feedback::{FeedbackBooks, FeedbackId, FeedbackSettings, RateControl};
pub use link::{Buffer, LinkBooks, LinkSettings};
pub use packet::{Direction, Ecn, FlowId, Packet, PacketKind};
pub use record::{FlowEnd, FlowRecord, FlowSettings, Response, TcpId};
pub use stage::{Answer, NoStage, Stage, Watch};
pub use tcp::{Counting, Recovery, TcpSettings, TimeoutFloor};
pub use topology::{LinkId, NodeId, RouteId};
pub use world::{Network, PacketBooks};
