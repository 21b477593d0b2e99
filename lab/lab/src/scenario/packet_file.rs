//! Form of links and packets in a scenario file.

use crate::scenario::quantity::{BitRate, ByteCount, Room, Span};
use crate::scenario::text::{Stretch, Text, Time};
use serde::Deserialize;
use std::num::{NonZeroU16, NonZeroU32};

/// A link between two nodes. Any of these makes a scenario packet level.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkFile {
    pub(crate) name: Option<String>,
    pub(crate) between: [String; 2],
    pub(crate) rate: Option<Text<BitRate>>,
    pub(crate) rate_there: Option<Text<BitRate>>,
    pub(crate) rate_back: Option<Text<BitRate>>,
    pub(crate) delay: Option<Text<Time>>,
    pub(crate) buffer: Text<Room>,
    pub(crate) loss: Option<f64>,
    #[serde(default)]
    pub(crate) discipline: DisciplineName,
    #[serde(default)]
    pub(crate) ecn: bool,
    pub(crate) threshold_low: Option<f64>,
    pub(crate) threshold_high: Option<f64>,
    pub(crate) probability_max: Option<f64>,
    pub(crate) weight: Option<f64>,
    pub(crate) gamma: Option<f64>,
    pub(crate) alpha: Option<f64>,
    pub(crate) phi: Option<f64>,
    pub(crate) target_packets: Option<f64>,
    pub(crate) update: Option<Text<Time>>,
    pub(crate) packet_bytes: Option<NonZeroU16>,
}

/// Discipline that drops or marks packets at a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DisciplineName {
    #[default]
    DropTail,
    Red,
    Rem,
    /// Flows that have more of the buffer than their share dropped, as BLACK does.
    BlackLike,
    /// Purge as its paper has it.
    PublishedPurge,
    /// Purge, repaired.
    Purge,
}

/// Hosts of the clients of a class.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientsFile {
    pub(crate) at: String,
    pub(crate) count: NonZeroU32,
    pub(crate) rate: Text<Span<BitRate>>,
    pub(crate) delay: Text<Span<Time>>,
    pub(crate) buffer: Option<Text<Room>>,
}

/// A long transfer over one connection.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TransferFile {
    pub(crate) name: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) starts: Option<Text<Time>>,
    pub(crate) bytes: Option<Text<ByteCount>>,
}

/// Datagrams at a constant rate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatagramsFile {
    pub(crate) name: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) rate: Text<BitRate>,
    pub(crate) packet_bytes: Option<NonZeroU16>,
    pub(crate) during: Option<Text<Stretch>>,
}

/// TCP variant of both ends of every connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum TcpName {
    #[default]
    #[serde(rename = "modern")]
    Modern,
    #[serde(rename = "2003")]
    Of2003,
}

/// Position of the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ControllerPlace {
    #[default]
    Gateway,
    Router,
}
