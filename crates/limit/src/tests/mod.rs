//! The limit before simulated origins, its invariants, and its cost.

mod cost;
mod invariants;
mod origin;
