//! Everything that can go wrong, at random from a seed, around one real gateway.
//!
//! Goal: every request that a client has sent whole gets exactly one answer, its own; no server sees a
//! request twice; memory and open files come back. Method: clients that behave and clients that do not,
//! servers that come and go, reloads, pauses, crashes, a disk that is full and a clock that jumps. Each seed
//! leaves some of it out, so that the rest is seen alone.
//!
//! `make soak SECONDS=1800 SEED=1`; a few seconds of it are part of every test run.
//!
//! Twin in virtual time of the tests under load: `sim`, `request_swarm`.

mod account;
mod clients;
mod scene;
mod servers;
mod troubles;

use flashweir_testkit::number_from_environment;
use std::time::Duration;

/// Of the run that is part of every test run.
const SHORT: Duration = Duration::from_secs(8);

#[test]
#[ignore = "real load: make test-load"]
fn a_few_seconds_of_everything_at_random_under_load() {
    scene::soak(1, SHORT);
}

#[test]
#[ignore = "as long as one likes: make soak"]
fn everything_at_random_for_as_long_as_one_likes() {
    scene::soak(
        number_from_environment("SEED", 1),
        Duration::from_secs(number_from_environment("SECONDS", 60)),
    );
}
