//! Deterministic simulator: the same planners and gates as the gateway's, in virtual time, from one seed.
//!
//! [`engine`] keeps the order of events; [`network`] is a world of packets, [`router`] is NEWS in it;
//! [`request`] is people, gates and servers, over a delay or over packets; [`news`] is the flash crowds of
//! the NEWS paper in it; [`pool`] is servers that are ordered and given back; [`replicas`] is servers with
//! copies of documents, and redirectors that spread requests over them. Pure: no clock, socket, thread or
//! file; a run is a function of its settings and its seed, and [`engine::EventHash`] proves it.

pub mod engine;
pub mod network;
pub mod news;
pub mod pool;
pub mod replicas;
pub mod request;
pub mod router;
