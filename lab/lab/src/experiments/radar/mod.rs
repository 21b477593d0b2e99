//! RaDaR with ACDN's algorithms, as Esser's thesis measured it: its §3 and §4, as published and repaired.

mod plant;
mod runs;

pub(crate) mod closed_loop;
pub(crate) mod fractals;
pub(crate) mod herd;
pub(crate) mod one_server;
pub(crate) mod redirect_levels;
pub(crate) mod scaling;
pub(crate) mod step;
pub(crate) mod three_servers;
