//! Tests of the public interface, one theme in each file.

mod definition;
