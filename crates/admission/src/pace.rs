//! Interval at which a gateway measures and plans. One place, so that the simulator keeps the pace of the
//! real one.

use flashweir_core::Duration;

/// Between two looks of a worker at the responses whose acknowledgement it awaits. Rarer looks would make
/// times coarser; each costs system calls.
pub const SWEEP_INTERVAL: Duration = Duration::from_millis(10);
/// Responses a worker measures between two sweeps, the first that end: 3,200 a second and worker, where a
/// verdict asks for thirty in 100 ms. Asking the kernel about every one of tens of thousands shows in a
/// worker's time.
pub const MEASURED_PER_SWEEP: usize = 32;
/// Gates hand their samples over at least this often, so that one with a long interval between plans stays
/// small.
pub const SAMPLE_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// Between two ticks of a planner, however busy it wants to be.
pub const TICK_INTERVAL_MIN: Duration = Duration::from_millis(1);
