//! Tests of the public interface, one theme in each file.

mod binary_seeds;
mod targets;
