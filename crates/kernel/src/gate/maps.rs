//! The maps that user space reads and writes.

use crate::map::Map;
use crate::program::{LoadError, Program};

/// All of them.
#[derive(Debug)]
pub(super) struct Maps {
    pub(super) control: Map,
    pub(super) endpoints: Map,
    pub(super) plans: Map,
    pub(super) answers: Map,
    pub(super) preferred: Map,
    pub(super) tier_networks: Map,
    pub(super) purged: Map,
    pub(super) counts: Map,
    pub(super) passes: Map,
}

impl Maps {
    pub(super) fn of(program: &Program) -> Result<Self, LoadError> {
        let map = |name| Map::of(program, name);
        Ok(Self {
            control: map("control")?,
            endpoints: map("endpoints")?,
            plans: map("plans")?,
            answers: map("answers")?,
            preferred: map("preferred")?,
            tier_networks: map("tier_networks")?,
            purged: map("purged")?,
            counts: map("counts")?,
            passes: map("passes")?,
        })
    }
}
