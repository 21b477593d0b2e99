//! The controller at a router, from what was written.

use crate::scenario::file::{ControllerFile, ControllerMode};
use crate::scenario::link::Link;
use crate::scenario::nodes::Nodes;
use crate::scenario::packet_file::ControllerPlace;
use crate::scenario::problem::{Problem, wrong};
use crate::scenario::text::{Text, Time};
use flashweir_core::{Duration, Rate};
use flashweir_sim::request::{PacketNetwork, RouterPlace};
use flashweir_sim::router::{Controller, Reading, RouterSettings};

impl ControllerFile {
    /// The router that drops SYNs, if that is where the controller is; with the mode `none` it only measures.
    pub(crate) fn router(
        &self,
        network: &PacketNetwork,
        links: &[Link],
        nodes: &Nodes,
        classes: &[&str],
    ) -> Result<Option<RouterPlace>, Problem> {
        self.check_place()?;
        if self.at == ControllerPlace::Gateway {
            return Ok(None);
        }
        let wire = self.link_number(links)?;
        let guarded = self.guarded(network, (links, wire), nodes, classes)?;
        let controller = match self.mode {
            ControllerMode::Static => match self.static_rate()? {
                Some(rate) => Controller::Static(Rate::from_per_second(rate)),
                None => return wrong("controller.rate", "missing: mode \"static\" needs one"),
            },
            mode @ (ControllerMode::Sentry | ControllerMode::Default) => {
                let name = if mode == ControllerMode::Sentry { "sentry" } else { "default" };
                return wrong(
                    "controller.mode",
                    format!("\"{name}\" goes with at = \"gateway\": a router holds no requests"),
                );
            }
            rules => rules.flash_crowd().planner().map_or(Controller::None, Controller::News),
        };
        let reading = match controller {
            Controller::News(mode) => Reading::usual_for(mode),
            Controller::None | Controller::Static(_) => Reading::Corrected,
        };
        let interval = self.interval.map_or(INTERVAL_USUAL, |Text(Time(interval))| interval);
        let hot_spots = self.hot_spots.unwrap_or(true);
        let settings = RouterSettings { controller, interval, reading, hot_spots };
        let first_tick = self.first_tick.map_or(interval, |Text(Time(time))| time);
        Ok(Some(RouterPlace { wire, settings, first_tick, guarded }))
    }

    /// Keys that go with one place only.
    fn check_place(&self) -> Result<(), Problem> {
        let at_router = [("link", self.link.is_some()), ("guards", self.guards.is_some())];
        let at_gateway = [
            ("burst", self.burst.is_some()),
            ("margin", self.margin.is_some()),
            ("target", self.target.is_some()),
            ("gates", self.gates.is_some()),
            ("decision_time", self.decision_time.is_some()),
            ("shadow", self.shadow),
        ];
        let (others, place) = match self.at {
            ControllerPlace::Gateway => (at_router.as_slice(), "router"),
            ControllerPlace::Router => (at_gateway.as_slice(), "gateway"),
        };
        match others.iter().find(|(_, given)| *given) {
            Some((name, _)) => wrong(format!("controller.{name}"), format!("goes with at = \"{place}\"")),
            None => Ok(()),
        }
    }

    fn link_number(&self, links: &[Link]) -> Result<usize, Problem> {
        let names = || links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
        match &self.link {
            Some(name) => match links.iter().position(|link| link.name == *name) {
                Some(place) => Ok(place),
                None => wrong(
                    "controller.link",
                    format!("there is no link \"{name}\": expected one of {}", names()),
                ),
            },
            None if links.len() == 1 => Ok(0),
            None => wrong("controller", format!("missing key `link`: at which, of {}?", names())),
        }
    }

    /// Limited classes: those named, or all whose requests the router sees.
    fn guarded(
        &self,
        network: &PacketNetwork,
        (links, wire): (&[Link], usize),
        nodes: &Nodes,
        classes: &[&str],
    ) -> Result<Vec<bool>, Problem> {
        let link = &links[wire];
        let crosses: Vec<bool> = network
            .paths
            .iter()
            .map(|path| {
                let [near, far] = network.wires[wire].ends;
                let clients = network.clients[path.clients].at;
                let [to_near, from_far, whole] =
                    [(clients, near), (far, path.server), (clients, path.server)]
                        .map(|(from, to)| nodes.distance(from, to));
                to_near.zip(from_far).map(|(before, after)| before + 1 + after) == whole
            })
            .collect();
        let way = format!("link \"{}\" from \"{}\" to \"{}\"", link.name, link.between[0], link.between[1]);
        let Some(guards) = &self.guards else {
            return if crosses.contains(&true) {
                Ok(crosses)
            } else {
                wrong("controller.link", format!("no class sends requests over {way}"))
            };
        };
        if guards.is_empty() {
            return wrong("controller.guards", "expected one class at least, or no guards: all then");
        }
        for name in guards {
            match classes.iter().position(|class| class == name) {
                None => return wrong("controller.guards", format!("there is no class \"{name}\"")),
                Some(class) if !crosses[class] => {
                    let problem = format!("\"{name}\" does not send requests over {way}");
                    return wrong("controller.guards", problem);
                }
                Some(_) => {}
            }
        }
        Ok(classes.iter().map(|class| guards.iter().any(|name| name == class)).collect())
    }
}

/// The measurement interval of NEWS (§4.2: T), as the router's own.
const INTERVAL_USUAL: Duration = Duration::from_secs(60);
