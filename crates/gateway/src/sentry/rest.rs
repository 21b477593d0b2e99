//! The planner rests while no request comes.
//!
//! Looking fifty times a second wakes every worker, which an idle machine is to be spared. While it rests the
//! planner still looks once a second, so that values smoothed over time fade as they do otherwise, and the
//! first request that asks wakes it. That request needs nothing of it: a plan stays in force until there is
//! another. The planner looks at once when it is woken, so the idle time is its own sample and what comes
//! then is not averaged with it.

use flashweir_admission::RestFlag;
use tokio::sync::Notify;

/// One for all services: a request to any of them wakes the one planner task.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    flag: RestFlag,
    bell: Notify,
}

impl Rest {
    /// A request needs looking after.
    pub(crate) fn wake(&self) {
        if self.flag.wakes() {
            self.bell.notify_one();
        }
    }

    /// From now on the next request is to wake the planner. Samples asked for from here on tell of every
    /// request before that one: asking (a bell, which orders memory) comes after this.
    pub(super) fn begin(&self) {
        self.flag.begin();
    }

    /// The planner looks anyway.
    pub(super) fn end(&self) {
        self.flag.end();
    }

    /// Returns whether no request has come since it began.
    pub(super) fn goes_on(&self) -> bool {
        self.flag.goes_on()
    }

    /// Waits for a request.
    pub(super) async fn woken(&self) {
        self.bell.notified().await;
    }
}
