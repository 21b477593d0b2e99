//! `flashweir router` in network namespaces of its own: the real binary, real nginx, real connections through a narrow
//! link.

#[path = "../kernel/bpf_files.rs"]
mod bpf_files;
mod crowd;
mod ends;
mod pins;
mod scene;
mod start_errors;
