//! A protection before an origin, which listens.

use crate::common::stage::binary;
use crate::protection::{Kind, Standing, Tools, haproxy::Setting};
use crate::watch::Watch;
use flashweir_load::trials::origins::{Belief, FoundLimit, Protection};
use flashweir_testkit::{Gateway, GatewayBuilder};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) enum Front {
    Other(Standing),
    Gateway(Gateway, Watch),
}

impl Front {
    /// Starts one before `origin`; `kind` is what to start unless it is Flashweir. Why not, if a program is
    /// missing or does not start.
    pub(crate) fn start(
        tools: &Tools,
        protection: Protection,
        kind: Kind,
        origin: SocketAddr,
    ) -> Result<Self, String> {
        match protection {
            Protection::Flashweir => {
                let gateway = GatewayBuilder::new(&binary()).upstream(&format!("http://{origin}")).start();
                let watch = Watch::start(&gateway);
                Ok(Self::Gateway(gateway, watch))
            }
            _ => kind.start(tools, origin).map(Self::Other),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Other(standing) => standing.address,
            Self::Gateway(gateway, _) => gateway.address(),
        }
    }

    /// Ends it; what the gateway believed in each of `stretches` after `started`.
    pub(crate) fn stop(
        self,
        started: Option<Instant>,
        stretches: &[[Duration; 2]],
        trace: Option<(&Path, &str)>,
    ) -> Vec<Option<Belief>> {
        match self {
            Self::Other(_) => vec![None; stretches.len()],
            Self::Gateway(gateway, watch) => {
                let beliefs = watch.stop(started, stretches, trace);
                drop(gateway);
                beliefs
            }
        }
    }
}

/// Program to start for a column of the table; an error if its static limit was not found.
pub(crate) fn kind(protection: Protection, found: Option<&FoundLimit>) -> Result<Kind, String> {
    match protection {
        Protection::Nothing => Ok(Kind::Nothing),
        Protection::Flashweir => Ok(Kind::Flashweir),
        Protection::Envoy => Ok(Kind::Envoy),
        Protection::Haproxy => {
            let found = found.ok_or("no static limit was found")?;
            Ok(Kind::Haproxy(Setting { maxconn: found.maxconn, queue_timeout_ms: found.queue_timeout_ms }))
        }
    }
}
