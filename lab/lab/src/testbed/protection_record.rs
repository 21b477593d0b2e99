//! Record of a protection: its decisions, its cost, and what casts doubt on them.

use crate::experiments::testbed::{Decision, RouterCost};

/// Record of a protection.
#[derive(Default)]
pub(super) struct ProtectionRecord {
    pub(super) decisions: Vec<Decision>,
    pub(super) router: Option<RouterCost>,
    /// Reasons why this may say little.
    pub(super) doubts: Vec<String>,
}
