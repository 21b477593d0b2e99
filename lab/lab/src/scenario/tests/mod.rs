//! Tests of the public interface, one theme in each file.

mod committed;
mod files;
mod manual;
mod packets;
