//! Tests of the public interface, one theme in each file.

mod partition;
mod planner;
mod queueing;
mod shares;
