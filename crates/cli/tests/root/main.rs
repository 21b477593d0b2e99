//! `flashweir` in network namespaces, with programs in the kernel and as a package: what takes root.

mod kernel;
mod links;
mod packages;
mod router;
