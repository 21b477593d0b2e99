//! The layer before services of a known capacity, in virtual time and under a real server.

mod admission;
mod bodies;
mod classes;
mod service;
mod under_hyper;
