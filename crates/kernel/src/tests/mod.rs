//! Tests of the public interface, one theme in each file.

mod at_an_interface;
mod before_an_interface;
mod link_at_an_interface;
