//! Conditions that must hold after every step of a world.

use flashweir_core::Instant;

/// A named condition on a world; an error says what is wrong, with the numbers.
pub type Check<W> = (&'static str, fn(&W) -> Result<(), String>);

/// Runs `checks` on `world` where debug assertions are compiled in (tests, debug builds); nothing otherwise.
///
/// Call it after every step with checks that look at what the step touched, and now and then, and at the end,
/// with those that look at everything.
///
/// # Panics
/// If a check fails: conservation, bounds and the order of time are invariants of the simulator, not results.
pub fn check_world<W>(now: Instant, world: &W, checks: &[Check<W>]) {
    if !cfg!(debug_assertions) {
        return;
    }
    for (name, check) in checks {
        if let Err(problem) = check(world) {
            panic!("check `{name}` failed at {:.9} s: {problem}", now.as_secs_f64());
        }
    }
}
