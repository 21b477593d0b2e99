//! Tests of the public interface, one theme in each file.

mod prices;
mod purge;
mod sketch;
