//! `flashweir load` by its program `flashweir-load`, on loopback.

mod binary;
mod faces;
mod options;
mod runs;
mod transport;
