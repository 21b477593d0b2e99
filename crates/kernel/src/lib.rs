//! Safe wrappers over what only the kernel knows; the one crate that may use unsafe code.
