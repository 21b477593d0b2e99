//! Helpers that several benches share.

pub(crate) mod stage;

/// Returns whether this is a measurement: `cargo test --benches` and `cargo bench -- --list` must not start
/// servers.
pub(crate) fn is_asked_to_measure() -> bool {
    let is_asked = std::env::args().any(|argument| argument == "--bench");
    if !is_asked {
        println!("0 passed, 0 failed");
    }
    is_asked
}
