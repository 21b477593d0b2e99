//! Commands of `flashweir` that start no server.

mod dependency_directions;
mod file_circles;
mod laboratory;
mod load_tests;
mod shared;
mod test_table;
mod usage;
mod words;

// Files of the binary, for the tests inside them.
#[path = "../../src/commands/admin_client.rs"]
#[expect(dead_code, reason = "only what the tests call is used")]
mod admin_client_source;
#[path = "../../src/laboratory.rs"]
#[expect(dead_code, reason = "only what the tests call is used")]
mod laboratory_source;
#[path = "../../src/logging/mod.rs"]
#[expect(dead_code, reason = "only what the tests call is used")]
mod logging_source;
#[path = "../../src/commands/explain/readable.rs"]
mod readable_source;
#[path = "../../src/commands/status/summary.rs"]
mod summary_source;
