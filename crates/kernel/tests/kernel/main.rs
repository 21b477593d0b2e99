//! The programs in the kernel through their public interface: a build without `cfg(test)` keeps libbpf
//! silent, as the product does.

mod at_an_interface;
mod before_an_interface;
mod link_at_an_interface;
