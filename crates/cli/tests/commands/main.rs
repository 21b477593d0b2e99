//! Commands of `flashweir` that start no server.

mod dependency_directions;
mod laboratory;
mod load_tests;
mod shared;
mod test_table;
mod usage;
