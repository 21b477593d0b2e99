//! Validation of the description of a network.

use super::build::Built;
use super::error::wrong;
use super::{ClientGroup, PacketNetwork, RouterPlace};
use crate::request::{ClassModel, ScenarioError};
use flashweir_core::limits::{SIM_CLIENTS, SIM_TRANSFERS};
use flashweir_core::{Duration, Instant};

impl PacketNetwork {
    /// Checks everything that does not need the clients' links, and that there are not too many of those.
    /// O((nodes + wires) · paths).
    ///
    /// # Errors
    /// The first thing that is wrong, by the name of the field.
    pub(in crate::request) fn check(
        &self,
        classes: &[ClassModel],
        length: Duration,
    ) -> Result<(), ScenarioError> {
        for (index, group) in self.clients.iter().enumerate() {
            group.check(index)?;
        }
        let paths = self.paths.len();
        if paths != classes.len() {
            return wrong("paths", format!("{paths} paths for {} classes: one for each", classes.len()));
        }
        for (index, path) in self.paths.iter().enumerate() {
            if path.clients >= self.clients.len() {
                let problem = format!("there is no group {} of clients", path.clients);
                return wrong(format_args!("paths[{index}].clients"), problem);
            }
        }
        // Each class's clients have separate routes, and a route takes a look at all nodes.
        let routes = self.paths.iter().map(|path| self.clients[path.clients].count as usize);
        let routes = routes.fold(0, usize::saturating_add);
        if routes > SIM_CLIENTS {
            return wrong("clients", format!("{routes} clients of all classes are more than {SIM_CLIENTS}"));
        }
        if let Some(router) = &self.router {
            router.check(self.wires.len(), classes.len())?;
        }
        if self.transfers.len() > SIM_TRANSFERS {
            return wrong("transfers", format!("{} are more than {SIM_TRANSFERS}", self.transfers.len()));
        }
        let ends_at = Instant::from_duration(length);
        for (index, transfer) in self.transfers.iter().enumerate() {
            if Instant::from_duration(transfer.starts) >= ends_at {
                return wrong(format_args!("transfers[{index}].starts"), "the run is over by then");
            }
        }
        Built::without_clients(self).map(drop)
    }

    /// Series of the outcome beside those of the classes.
    pub(in crate::request) fn series(&self) -> usize {
        2 * self.wires.len() + self.transfers.len() + self.datagrams.len() + 2
    }
}

impl ClientGroup {
    fn check(&self, index: usize) -> Result<(), ScenarioError> {
        let key = |field: &str| format!("clients[{index}].{field}");
        if self.count == 0 {
            return wrong(key("count"), "a group without clients");
        }
        let (slowest, fastest) = self.access_bits_per_s;
        if slowest == 0 || slowest > fastest {
            let problem = format!("{slowest} to {fastest}: expected the slowest first, from 1 bit/s");
            return wrong(key("access_bits_per_s"), problem);
        }
        let (shortest, longest) = self.access_delay;
        if shortest > longest || (shortest.is_zero() && !longest.is_zero()) {
            let problem = format!("{shortest:?} to {longest:?}: expected the shortest first, above zero");
            return wrong(key("access_delay"), problem);
        }
        Ok(())
    }
}

impl RouterPlace {
    fn check(&self, wires: usize, classes: usize) -> Result<(), ScenarioError> {
        if self.wire >= wires {
            return wrong("router.wire", format!("there is no wire {}", self.wire));
        }
        let interval = self.settings.interval;
        if !(INTERVAL_LEAST..=INTERVAL_MOST).contains(&interval) {
            let problem = format!("{} s: expected 1 to 3600 s", interval.as_secs_f64());
            return wrong("router.interval", problem);
        }
        if self.first_tick.is_zero() || self.first_tick > interval {
            let problem =
                format!("{} s: expected above zero and at most the interval", self.first_tick.as_secs_f64());
            return wrong("router.first_tick", problem);
        }
        if self.guarded.len() != classes {
            let problem = format!("{} entries for {classes} classes: one for each", self.guarded.len());
            return wrong("router.guarded", problem);
        }
        Ok(())
    }
}

/// Below a second, a time sliding window has nothing new to say.
const INTERVAL_LEAST: Duration = Duration::from_secs(1);
const INTERVAL_MOST: Duration = Duration::from_secs(3_600);
