//! `flashweir router --link` in network namespaces of its own: the real binary, real TCP and UDP through a narrow link.

mod bad_input;
mod ends;
mod fairness;
mod scene;
