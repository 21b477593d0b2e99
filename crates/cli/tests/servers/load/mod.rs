//! `flashweir load` through the real binary, on loopback.

mod binary;
mod faces;
mod options;
mod runs;
mod transport;
