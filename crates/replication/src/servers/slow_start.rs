//! The part of its share that a fresh server gets.

use flashweir_core::Duration;

/// The least part: with nothing, a server would never warm up; a tenth of the load of one server is what a
/// cold cache serves.
const PART_MIN: f64 = 0.1;

/// Grows in proportion to the server's age from a tenth to one at the end of `window`; one where there is no
/// window.
///
/// A server with cold caches serves each request slowly at first. A policy that sends requests to the least
/// loaded server sends all of them there, so the share is limited from outside.
///
/// ```
/// use flashweir_core::Duration;
/// use flashweir_replication::servers::slow_start;
/// let window = Duration::from_secs(10);
/// assert_eq!(slow_start(Duration::from_secs(5), window), 0.5);
/// assert_eq!(slow_start(Duration::ZERO, window), 0.1);
/// assert_eq!(slow_start(Duration::ZERO, Duration::ZERO), 1.0);
/// ```
#[must_use]
pub fn slow_start(age: Duration, window: Duration) -> f64 {
    if age >= window { 1.0 } else { (age.as_secs_f64() / window.as_secs_f64()).max(PART_MIN) }
}
