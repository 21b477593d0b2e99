//! Nodes, the links between them, and the shortest routes along which flows send.

use super::NetworkError;
use super::packet::Direction;
use flashweir_core::limits;
use std::collections::VecDeque;

/// A host or a router. It does nothing by itself: queues belong to links, and decisions to stages that watch
/// links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(pub(super) u32);

/// One direction of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkId(pub(super) u32);

/// The way from a client to a server and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouteId(pub(super) u32);

/// One step of a route. All routes lie behind one another in one table and a packet carries its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hop {
    Link(LinkId),
    End,
}

#[derive(Debug, Default)]
pub(super) struct Topology {
    /// For each node, the links that leave it and where they lead.
    leaving: Vec<Vec<(LinkId, NodeId)>>,
    hops: Vec<Hop>,
    /// Index of the first hop of each route, up and down.
    routes: Vec<[u32; 2]>,
}

impl Topology {
    pub(super) fn add_node(&mut self) -> Result<NodeId, NetworkError> {
        bounded(self.leaving.len(), "nodes", limits::SIM_NODES)?;
        self.leaving.push(Vec::new());
        Ok(NodeId(self.leaving.len() as u32 - 1))
    }

    pub(super) fn connect(&mut self, link: LinkId, from: NodeId, to: NodeId) -> Result<(), NetworkError> {
        self.known(to)?;
        self.known(from)?;
        self.leaving[from.0 as usize].push((link, to));
        Ok(())
    }

    /// Finds the routes with the fewest links both ways; among equals, the one whose links were added first.
    /// O(nodes + links), at the start of a run.
    pub(super) fn add_route(&mut self, from: NodeId, to: NodeId) -> Result<RouteId, NetworkError> {
        bounded(self.routes.len(), "routes", limits::SIM_ROUTES)?;
        let up = self.shortest(from, to)?;
        let down = self.shortest(to, from)?;
        let starts = [up, down].map(|links| {
            let start = self.hops.len() as u32;
            self.hops.extend(links.into_iter().map(Hop::Link));
            self.hops.push(Hop::End);
            start
        });
        bounded(self.hops.len(), "hops of routes", limits::SIM_HOPS)?;
        self.routes.push(starts);
        Ok(RouteId(self.routes.len() as u32 - 1))
    }

    pub(super) fn first_hop(&self, route: RouteId, direction: Direction) -> u32 {
        self.routes[route.0 as usize][usize::from(direction == Direction::Down)]
    }

    pub(super) fn hop(&self, index: u32) -> Hop {
        self.hops[index as usize]
    }

    pub(super) fn knows_route(&self, route: RouteId) -> Result<(), NetworkError> {
        let index = route.0 as usize;
        if index < self.routes.len() { Ok(()) } else { Err(NetworkError::Unknown { what: "route", index }) }
    }

    fn known(&self, node: NodeId) -> Result<(), NetworkError> {
        let index = node.0 as usize;
        if index < self.leaving.len() { Ok(()) } else { Err(NetworkError::Unknown { what: "node", index }) }
    }

    fn shortest(&self, from: NodeId, to: NodeId) -> Result<Vec<LinkId>, NetworkError> {
        self.known(from)?;
        self.known(to)?;
        // How each node was reached first: breadth first, so with the fewest links.
        let mut reached: Vec<Option<(LinkId, NodeId)>> = vec![None; self.leaving.len()];
        let mut frontier = VecDeque::from([from]);
        while let Some(node) = frontier.pop_front() {
            if node == to && node != from {
                break;
            }
            for &(link, next) in &self.leaving[node.0 as usize] {
                if next != from && reached[next.0 as usize].is_none() {
                    reached[next.0 as usize] = Some((link, node));
                    frontier.push_back(next);
                }
            }
        }
        let mut links = Vec::new();
        let mut node = to;
        while let Some((link, before)) = reached[node.0 as usize] {
            links.push(link);
            node = before;
        }
        links.reverse();
        if links.is_empty() { Err(NetworkError::Unreachable { from: from.0, to: to.0 }) } else { Ok(links) }
    }
}

/// An error once a table of `length` entries may not get another.
pub(super) fn bounded(length: usize, what: &'static str, bound: usize) -> Result<(), NetworkError> {
    if length < bound { Ok(()) } else { Err(NetworkError::TooMany { what, bound }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_fewest_links_and_says_when_there_are_none() {
        let mut topology = Topology::default();
        let nodes: Vec<NodeId> = (0..5).map(|_| topology.add_node().unwrap()).collect();
        for (link, (from, to)) in [(0, 1), (1, 2), (0, 3), (3, 1), (2, 0)].into_iter().enumerate() {
            topology.connect(LinkId(link as u32), nodes[from], nodes[to]).unwrap();
        }
        let route = topology.add_route(nodes[0], nodes[2]).unwrap();
        let walk = |direction| {
            let first = topology.first_hop(route, direction);
            (first..).map(|index| topology.hop(index)).take_while(|hop| *hop != Hop::End).collect::<Vec<_>>()
        };
        assert_eq!(walk(Direction::Up), [Hop::Link(LinkId(0)), Hop::Link(LinkId(1))]);
        assert_eq!(walk(Direction::Down), [Hop::Link(LinkId(4))]);
        let error = topology.add_route(nodes[0], nodes[4]).unwrap_err();
        assert_eq!(error, NetworkError::Unreachable { from: 0, to: 4 });
        let missing = topology.connect(LinkId(9), NodeId(7), nodes[0]).unwrap_err();
        assert_eq!(missing.to_string(), "there is no node 7 in this network");
    }
}
