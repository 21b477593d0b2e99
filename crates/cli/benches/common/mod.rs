//! What several benches share.

pub(crate) mod stage;

/// Whether this is a measurement: `cargo test --benches` and `cargo bench -- --list` must not start servers.
pub(crate) fn is_asked_to_measure() -> bool {
    let is_asked = std::env::args().any(|argument| argument == "--bench");
    if !is_asked {
        println!("0 passed, 0 failed");
    }
    is_asked
}

/// A number from the environment, or the usual one.
pub(crate) fn number_from_environment(name: &str, usual: u64) -> u64 {
    std::env::var_os(name).and_then(|text| text.to_str()?.parse().ok()).unwrap_or(usual)
}
