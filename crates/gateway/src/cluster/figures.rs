//! Numbers of this gateway as one of several: in metrics, and in the log where they say something new.

use super::{Cluster, Membership};
use crate::shared::Shared;
use flashweir_provisioning::shares::ShareState;
use flashweir_telemetry::ClusterFigures;

impl Cluster {
    /// Forgets services that are gone, publishes numbers and logs what changed. For each report.
    pub(super) fn publish(&self, shared: &Shared) {
        let now = shared.clock.now();
        let live = shared.live.load();
        let mut state = self.state();
        let sentries = || live.sentries.iter().flatten();
        state.members.retain(|name, _| sentries().any(|sentry| sentry.names.service == *name));
        for sentry in sentries() {
            state.membership(self, now, sentry);
        }
        let (is_leader, leader) = (state.is_leader, state.leader.clone());
        let mut figures = Vec::new();
        for (service, known) in &mut state.members {
            let of_member = known.member.figures(now);
            known.log(service, &leader, of_member.share_state);
            figures.push(ClusterFigures {
                service: service.clone(),
                limit: of_member.limit,
                share: of_member.share,
                elsewhere: of_member.elsewhere,
                gateways: of_member.gateways,
                silence_s: of_member.silence.map(|silence| silence.as_secs_f64()),
                standing: of_member.share_state.as_str(),
            });
        }
        shared.telemetry.control().publish_cluster(is_leader, figures);
    }
}

impl Membership {
    /// Says once when the gateway goes on by another plan.
    fn log(&mut self, service: &str, leader: &str, share_state: ShareState) {
        if share_state == self.share_state {
            return;
        }
        self.share_state = share_state;
        match share_state {
            ShareState::Joining => {}
            ShareState::Sharing => tracing::info!(service, leader, "the limit is shared with other gateways"),
            ShareState::Holding => {
                tracing::warn!(service, leader, "the leader is silent: the last share is kept")
            }
            ShareState::Equal => {
                tracing::warn!(service, leader, "the leader is still silent: the share goes to an equal one");
            }
            ShareState::Alone => {
                tracing::warn!(service, "no leader was heard since the start: the limit is not shared");
            }
        }
    }
}
