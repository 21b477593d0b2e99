//! Every bound in Flashweir, by name. What is configurable names its default here; the rest is fixed.

/// Hot-spot table entries (hosts tracked at once); N = 64 in ALGORITHMS §1.8.
pub const HOT_SPOT_ENTRIES: usize = 64;
/// Hot-spots limited at once: each holds more than a quarter of the load, so four is all there can be.
pub const HOT_SPOTS_LIMITED: usize = 4;
/// Response observations one worker keeps between two ticks; more are sampled uniformly (reservoir).
pub const RESPONSES_PER_SAMPLE: usize = 16_384;
/// Response observations in the planner's sliding window; the oldest go first.
pub const RESPONSES_PER_WINDOW: usize = 131_072;
/// Slots of the table that recognises a person's retry after a refusal (16 bytes each).
pub const REFUSED_ATTEMPTS: usize = 65_536;
/// URL classes that have a latency reference of their own; further URLs share by hash.
pub const URL_CLASSES: usize = 1_024;
/// Decisions each worker remembers for `flashweir explain`.
pub const DECISIONS_REMEMBERED: usize = 16_384;
/// Workers: one for each core, and a decision id has eight bits for it.
pub const WORKERS: usize = 256;
/// Samples in flight from one worker to the planner; a full queue keeps accumulating at the worker.
pub const SAMPLES_QUEUED: usize = 8;
/// Responses per worker whose acknowledgement by the client is still awaited; beyond it they go unmeasured.
pub const ACKS_AWAITED: usize = 16_384;
