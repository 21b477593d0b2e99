//! Commands of `flashweir` that start no server.

mod dependency_directions;
mod reproduce;
mod sim;
mod test_table;
mod usage;
