//! The gate before a real interface: real clients, Linux's TCP on both sides, separate network namespaces.

mod bench;
mod browser;
mod clients;
mod ends;
mod interfaces;
mod pins;
