//! `flashweir run --kernel` in network namespaces of its own: the real binary, the real origin, real connections.

mod crowd;
mod crowds;
mod scene;
mod start_errors;
