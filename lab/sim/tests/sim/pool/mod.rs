//! Goal: unmet demand brings servers, and quiet demand does not keep idle ones. Method: the planner of
//! capacity in the simulator's pool, beside an autoscaler on processor utilisation and an oracle that knows
//! the profile.

mod crowd;
mod invariants;
mod moving;
mod quiet;
