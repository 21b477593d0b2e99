//! Troubles of the gateway, its servers, its disk and its clock.

use flashweir_core::Rng;
use flashweir_testkit::{Flashweir, Gateway, PATIENCE, Signal, Upstream, until};
use std::net::SocketAddr;
use std::time::Duration;

use crate::soak::scene::Scene;
use crate::soak::servers;

/// Time for which a server that goes is away.
const AWAY: Duration = Duration::from_millis(300);
/// Maximum pause of the gateway, milliseconds.
const PAUSE_MS: u64 = 300;
const HOUR_S: i64 = 3_600;

/// One kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    ServerFlaps,
    Http2ServerCuts,
    Reload,
    BadReload,
    Pause,
    Crash,
    Restart,
    FullDisk,
    ClockJumps,
}

const ALL: [(Trouble, u64); 9] = [
    (Trouble::ServerFlaps, 12),
    (Trouble::Http2ServerCuts, 8),
    (Trouble::Reload, 6),
    (Trouble::BadReload, 3),
    (Trouble::Pause, 4),
    (Trouble::Crash, 2),
    (Trouble::Restart, 2),
    (Trouble::FullDisk, 2),
    (Trouble::ClockJumps, 2),
];

/// Troubles of this seed, with their weights: each is left out with one chance in four.
pub(crate) fn chosen(rng: &mut Rng) -> Vec<(Trouble, u64)> {
    let mut chosen: Vec<_> = ALL.into_iter().filter(|_| rng.below(4) > 0).collect();
    chosen.iter_mut().for_each(|(_, weight)| *weight *= 1 + rng.below(3));
    if chosen.is_empty() { ALL.to_vec() } else { chosen }
}

/// One of them, by its weight.
pub(crate) fn draw(chosen: &[(Trouble, u64)], rng: &mut Rng) -> Trouble {
    let mut left = rng.below(chosen.iter().map(|(_, weight)| weight).sum());
    for &(trouble, weight) in chosen {
        if left < weight {
            return trouble;
        }
        left -= weight;
    }
    Trouble::Reload
}

impl Scene {
    /// Makes it happen.
    pub(crate) fn suffer(&mut self, trouble: Trouble, rng: &mut Rng) {
        match trouble {
            Trouble::ServerFlaps => {
                let index = rng.below(self.servers.len() as u64) as usize;
                let address: SocketAddr = self.servers[index].address();
                drop(std::mem::replace(&mut self.servers[index], Upstream::saying("no request comes here")));
                std::thread::park_timeout(AWAY);
                self.servers[index] = servers::start_at(address, &self.account);
            }
            Trouble::Http2ServerCuts => self.http2_server.cut(),
            Trouble::Reload => {
                let most = 60 + rng.below(40);
                self.gateway_mut().configure(&[("bounds.max_fields", Some(&most.to_string()))]);
                self.gateway().reload();
            }
            Trouble::BadReload => {
                self.gateway_mut().configure(&[("bounds.max_fields", Some("\"many\""))]);
                self.gateway().reload();
                until("the bad configuration to be refused", PATIENCE, || {
                    self.gateway().stderr().contains("max_fields").then_some(())
                });
                self.gateway_mut().configure(&[("bounds.max_fields", Some("100"))]);
            }
            Trouble::Pause => {
                self.gateway().process().signal(Signal::Pause);
                std::thread::park_timeout(Duration::from_millis(1 + rng.below(PAUSE_MS)));
                self.gateway().process().signal(Signal::Resume);
            }
            Trouble::Crash => self.replace_gateway(Gateway::crash),
            Trouble::Restart => self.replace_gateway(Gateway::stop),
            Trouble::FullDisk => {
                if let Some(disk) = &self.disk {
                    disk.fill();
                    // So that something is written meanwhile.
                    self.replace_gateway(Gateway::stop);
                    self.disk.iter().for_each(|disk| disk.empty());
                }
            }
            Trouble::ClockJumps => {
                if let Some(clock) = &self.clock {
                    clock.shift_s([HOUR_S, -HOUR_S, 0][rng.below(3) as usize]);
                }
            }
        }
    }

    fn replace_gateway(
        &mut self,
        end: impl Fn(Gateway, &Flashweir) -> (flashweir_testkit::Finished, flashweir_testkit::GatewayBuilder),
    ) {
        let Some(gateway) = self.gateway.take() else { return };
        self.account.next_generation();
        let (finished, builder) = end(gateway, &self.binary);
        if finished.stderr.contains("panicked") {
            self.account.fault(format!("a panic: {}", finished.stderr));
        }
        self.gateway = Some(builder.start());
        self.account.next_generation();
    }
}
