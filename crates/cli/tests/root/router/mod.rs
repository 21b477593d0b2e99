//! `flashweir router` in separate network namespaces: the real binary, real nginx, real connections through a
//! narrow link.

mod crowd;
mod ends;
mod pins;
mod scene;
mod start_errors;
