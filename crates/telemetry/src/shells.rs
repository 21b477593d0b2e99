//! Which groups each shell has: the one list to add a component's metrics to.

use std::sync::Arc;

use crate::Telemetry;
use crate::groups::classes::ClassGroup;
use crate::groups::kernel::ObserverGroup;
use crate::groups::process::{ProcessGroup, WorkersGroup};
use crate::label::Label as _;
use crate::log::Happening;

impl Telemetry {
    /// Metrics of a gateway with this many workers; `version` is what `flashweir_build_info` tells.
    #[must_use]
    pub fn gateway(workers: usize, version: &'static str) -> Self {
        let mut all = Self::new(workers);
        all.register_workers(|worker| &worker.requests);
        all.register_workers(|worker| &worker.bound_hits);
        all.register_workers(|worker| &worker.responses);
        all.register_workers(|worker| &worker.measurement);
        all.register_workers(|worker| &worker.connections);
        all.register_workers(|worker| &worker.upstream);
        all.register(all.control.upstreams_in_use.clone());
        all.register(all.control.flash_crowd.clone());
        let (workers, classes) = (Arc::clone(&all.workers), all.control.classes.clone());
        all.register(Arc::new(ClassGroup { workers, classes }));
        all.register(all.control.sentries.clone());
        all.register(all.control.candidates.clone());
        all.register(all.control.kernel.clone());
        let (control, workers) = (all.control(), all.workers.len());
        all.register(Arc::new(WorkersGroup { control, workers }));
        all.register_process(Happening::ALL, version);
        all
    }

    /// Metrics of a router, which has no workers.
    #[must_use]
    pub fn router(version: &'static str) -> Self {
        let mut all = Self::new(0);
        all.register(all.control.flash_crowd.clone());
        all.register(all.control.kernel.clone());
        all.register(Arc::new(ObserverGroup(all.control.kernel.clone())));
        let happenings = &[Happening::CauseChanged, Happening::StateFile, Happening::Kernel];
        all.register_process(happenings, version);
        all
    }

    fn register_process(&mut self, happenings: &'static [Happening], version: &'static str) {
        let (control, warnings) = (self.control(), self.warnings());
        self.register(Arc::new(ProcessGroup { control, warnings, happenings, version }));
    }
}
