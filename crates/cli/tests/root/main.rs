//! `flashweir` in network namespaces and with programs in the kernel: what takes root.

mod kernel;
mod links;
mod router;
