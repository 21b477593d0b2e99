//! The flashweir command.
fn main() {}
