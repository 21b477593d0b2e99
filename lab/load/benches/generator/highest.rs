//! The highest rate at which a tool keeps up.

/// Halvings of the interval: the answer is then within 2 % of the closed loop's rate.
const STEPS: usize = 6;

/// Searches up to a little more than the closed loop's rate; 0 if none is held. One failure may be the
/// machine's, so a rate counts as not held when it fails twice.
pub(crate) fn highest_held(closed_loop: f64, mut is_held: impl FnMut(f64) -> bool) -> f64 {
    let (mut held, mut too_much) = (0.0, closed_loop * 1.1);
    for _ in 0..STEPS {
        let rate = (held + too_much) / 2.0;
        if is_held(rate) || is_held(rate) {
            held = rate;
        } else {
            too_much = rate;
        }
    }
    held
}
