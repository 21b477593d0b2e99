//! Whole runs against real and scripted servers on loopback.

mod against_servers;
mod common;
mod people;
