//! A running origin of any kind: where it is, what it can do, and what becomes of its time.

use crate::application::Application;
use crate::link::{self, BehindLink, LinkRuler};
use crate::on_core::CoreRuler;
use crate::{node, php, postgres, wsgi};
use flashweir_load::trials::origins::{Origin, Share};
use flashweir_load::{Progress, Sources};
use flashweir_testkit::NarrowLink;
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) enum Place {
    OnCore(Application),
    BehindLink(BehindLink),
}

impl Place {
    /// Starts a fresh one; why not, if something is missing.
    pub(crate) fn start(origin: Origin) -> Result<Self, String> {
        match origin {
            Origin::Php => php::start().map(Self::OnCore),
            Origin::Wsgi => wsgi::start().map(Self::OnCore),
            Origin::Node => node::start().map(Self::OnCore),
            Origin::Postgres => postgres::start().map(Self::OnCore),
            Origin::Static => BehindLink::start().map(Self::BehindLink),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::OnCore(application) => application.address,
            Self::BehindLink(origin) => origin.network.address(),
        }
    }

    /// Path that clients ask for, without the slash before it.
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::OnCore(_) => "page",
            Self::BehindLink(_) => BehindLink::path(),
        }
    }

    /// Addresses of clients, if they are not those of loopback.
    pub(crate) fn sources(&self) -> Option<Sources> {
        match self {
            Self::OnCore(_) => None,
            // All addresses of the network but its first and its last.
            Self::BehindLink(_) => {
                Some(Sources { count: 65_534, network: NarrowLink::CLIENTS.parse().expect("a network") })
            }
        }
    }

    /// Runs `work` where clients and protections are.
    pub(crate) fn outside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match self {
            Self::OnCore(_) => work(),
            Self::BehindLink(origin) => origin.network.as_client(work),
        }
    }

    /// Requests a second that it completes in a closed loop.
    pub(crate) fn capacity_rps(&self) -> Result<f64, String> {
        match self {
            // What fits through the link is known.
            Self::BehindLink(_) => Ok(BehindLink::answers_rps()),
            Self::OnCore(application) => application.capacity_rps(self.path()),
        }
    }

    /// Packets that this machine lost because it was too busy to carry them.
    pub(crate) fn lost(&self) -> u64 {
        match self {
            Self::OnCore(_) => 0,
            Self::BehindLink(origin) => origin.network.lost(),
        }
    }

    pub(crate) fn measure(&self, moments: &[Duration]) -> Measure<'_> {
        match self {
            Self::OnCore(application) => Measure::OnCore(CoreRuler::new(application, moments)),
            Self::BehindLink(origin) => Measure::OfLink(LinkRuler::new(origin, moments)),
        }
    }
}

/// Reads an origin's account at given moments.
pub(crate) enum Measure<'a> {
    OnCore(CoreRuler),
    OfLink(LinkRuler<'a>),
}

impl Measure<'_> {
    pub(crate) fn look(&mut self, progress: &Progress) {
        match self {
            Self::OnCore(ruler) => ruler.look(progress),
            Self::OfLink(ruler) => ruler.look(progress),
        }
    }

    /// Shares of the time between two moments, and the part of the core's time that the origin's account does
    /// not show.
    pub(crate) fn share(&self, from: usize, to: usize) -> Result<(Share, Option<f64>), String> {
        match self {
            Self::OnCore(ruler) => ruler.share(from, to),
            Self::OfLink(ruler) => {
                let share = ruler.share(from, to).ok_or("the run ended before the link was read")?;
                Ok((share, None))
            }
        }
    }
}

/// Description of the link.
pub(crate) fn about_the_link() -> String {
    format!(
        "nginx with a file of {} kB behind a link of {} Mb/s with room for {} packets and {} ms each way, by `tc` between network namespaces",
        link::BODY_BYTES / 1_000,
        link::RATE_BITS_PER_S / 1_000_000,
        link::PACKETS,
        link::DELAY.as_millis()
    )
}
