//! `flashweir router` in network namespaces of its own: the real binary, real nginx, real connections through a narrow
//! link.

mod crowd;
mod ends;
mod pins;
mod scene;
mod start_errors;
