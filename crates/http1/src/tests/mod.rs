//! Tests of the public interface, one theme in each file.

mod framing;
mod half_ends;
mod other_parser;
mod pair;
mod pipes;
