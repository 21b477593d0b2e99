//! Commands of the program `flashweir-lab` that need no gateway.

mod origin;
mod reproduce;
mod sim;
