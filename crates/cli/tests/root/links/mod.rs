//! `flashweir router --link` in separate network namespaces: the real binary, real TCP and UDP through a
//! narrow link.

mod bad_input;
mod ends;
mod fairness;
mod scene;
