//! Every target over its seeds and some thousand mutations of them, by a fixed seed: the same in every run.

use crate::mutate::mutate;
use crate::{TARGETS, Target, target};
use flashweir_core::Rng;
use std::path::{Path, PathBuf};

/// Of the mutations. Another number is another run: it is the short run's only choice.
const SEED: u64 = 1;

fn folder(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target.name)
}

/// In the order of their names, which does not depend on the file system.
fn seeds(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = folder(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut seeds: Vec<_> = entries
        .map(|entry| {
            let entry = entry.expect("an entry");
            let bytes = std::fs::read(entry.path()).expect("a readable seed");
            (entry.file_name().to_string_lossy().into_owned(), bytes)
        })
        .collect();
    seeds.sort();
    seeds
}

/// Shows the input that a target failed with.
struct Shown<'a>(&'a Target, &'a str, &'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("target {}, {}: b\"{}\"", self.0.name, self.1, self.2.escape_ascii());
        }
    }
}

fn run(name: &str) {
    let target = target(name).expect("a target");
    let seeds = seeds(target);
    assert!(!seeds.is_empty(), "{name} has no seeds");
    for (file, seed) in &seeds {
        let _shown = Shown(target, file, seed);
        (target.run)(seed);
    }
    let mut rng = Rng::new(SEED);
    let mut one = || rng.next_u64() as usize % seeds.len();
    let picks: Vec<_> = (0..target.short_runs).map(|_| (one(), one())).collect();
    for (first, other) in picks {
        let input = mutate(&seeds[first].1, &seeds[other].1, target.words, &mut rng);
        let _shown = Shown(target, &seeds[first].0, &input);
        (target.run)(&input);
    }
}

/// One test for each target, so that they run at the same time and a failure has a name.
macro_rules! short_runs {
    ($($name:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            run(stringify!($name));
        })+

        #[test]
        fn every_target_has_a_test() {
            let tested = [$(stringify!($name)),+];
            let targets: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(targets, tested);
        }
    };
}

short_runs! {
    access_log,
    chunked_body,
    configuration,
    forwarding_fields,
    http1_connection,
    http2_connection,
    http2_head,
    proxied_request,
    proxied_response,
    recording,
    response_head,
    structured_fields,
    wire,
}
