//! libFuzzer's entry to all targets: `flashweir-fuzz --target=NAME [libFuzzer's options] CORPUS`.
//!
//! One program for all targets, because on a small machine linking a dozen instrumented programs takes longer
//! than running them. libFuzzer ignores options that begin with two hyphens.
#![no_main]

use flashweir_fuzz::{TARGETS, Target, target};
use libfuzzer_sys::fuzz_target;
use std::process::exit;
use std::sync::OnceLock;

static TARGET: OnceLock<&'static Target> = OnceLock::new();

/// Exit code for wrong usage, as of the `flashweir` command.
const USAGE: i32 = 64;

fn chosen() -> &'static Target {
    let name = std::env::args().find_map(|argument| argument.strip_prefix("--target=").map(str::to_owned));
    name.as_deref().and_then(target).unwrap_or_else(|| {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!(
            "flashweir-fuzz: --target={}: expected one of {}",
            name.unwrap_or_default(),
            names.join(", ")
        );
        exit(USAGE)
    })
}

fuzz_target!(|data: &[u8]| {
    (TARGET.get_or_init(chosen).run)(data);
});
