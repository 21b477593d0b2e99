//! `flashweir run --kernel` in separate network namespaces: the real binary, the real origin, real
//! connections.

pub(crate) mod bpf_files;
mod crowd;
mod crowds;
mod impatience;
mod pins;
mod scene;
mod start_errors;
