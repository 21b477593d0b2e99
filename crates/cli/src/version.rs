//! The answer to `--version`: the version, and that by which builds of it differ.

/// Optional features, and whether this build has each.
const FEATURES: [(&str, bool); 3] = [
    ("kernel", cfg!(feature = "kernel")),
    ("kubernetes", cfg!(feature = "kubernetes")),
    ("nats", cfg!(feature = "nats")),
];

/// Version, features and kind of linking, in one line each. Called once: the text stays for as long as
/// the process.
pub(crate) fn long() -> &'static str {
    let names = |is_in: bool| {
        let names: Vec<_> =
            FEATURES.iter().filter(|feature| feature.1 == is_in).map(|feature| feature.0).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let linked = if cfg!(target_feature = "crt-static") { "statically" } else { "dynamically" };
    let text = format!(
        "{}\nfeatures: {}\nleft out: {}\nlinked {linked}",
        env!("CARGO_PKG_VERSION"),
        names(true),
        names(false),
    );
    text.leak()
}
