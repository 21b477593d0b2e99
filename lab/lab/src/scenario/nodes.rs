//! The nodes of a scenario: the names between which links are.

use crate::scenario::link::Link;
use crate::scenario::problem::{Problem, wrong};
use std::collections::VecDeque;

/// Nodes by their names, and which of them are neighbours.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    names: Vec<String>,
    neighbours: Vec<Vec<usize>>,
}

impl Nodes {
    /// All that the links are between, numbered in the order in which they are named first.
    pub(crate) fn of(links: &[Link]) -> Self {
        let mut nodes = Self::default();
        for link in links {
            let [one, other] = link.between.each_ref().map(|name| nodes.number(name));
            nodes.neighbours[one].push(other);
            nodes.neighbours[other].push(one);
        }
        nodes
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of the node that `key` names.
    pub(crate) fn find(&self, key: impl Into<String>, name: &str) -> Result<u32, Problem> {
        match self.names.iter().position(|known| known == name) {
            // A file of a megabyte names far fewer nodes than a u32 counts.
            Some(place) => Ok(place as u32),
            None => wrong(
                key,
                format!(
                    "there is no node \"{name}\": expected an end of a link, of {}",
                    self.names.join(", ")
                ),
            ),
        }
    }

    /// Links on the shortest way from one node to the other; `None` if there is no way. O(nodes + links).
    pub(crate) fn distance(&self, from: u32, to: u32) -> Option<usize> {
        let mut distances: Vec<Option<usize>> = vec![None; self.names.len()];
        *distances.get_mut(from as usize)? = Some(0);
        let mut frontier = VecDeque::from([from as usize]);
        while let Some(node) = frontier.pop_front() {
            for &next in &self.neighbours[node] {
                if distances[next].is_none() {
                    distances[next] = distances[node].map(|distance| distance + 1);
                    frontier.push_back(next);
                }
            }
        }
        distances.get(to as usize).copied().flatten()
    }

    /// That packets get from the one node to the other; `key` says where to.
    pub(crate) fn check_way(&self, key: impl Into<String>, from: u32, to: u32) -> Result<(), Problem> {
        if self.distance(from, to).is_some() {
            return Ok(());
        }
        let [from, to] = [from, to].map(|node| &self.names[node as usize]);
        wrong(key, format!("no links lead from \"{from}\" to \"{to}\""))
    }

    fn number(&mut self, name: &str) -> usize {
        self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.neighbours.push(Vec::new());
            self.names.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_shortest_way() {
        let link = |one: &str, other: &str| Link {
            name: String::new(),
            between: [one.to_owned(), other.to_owned()],
            rates_bits_per_s: [1, 1],
        };
        let nodes =
            Nodes::of(&[link("a", "b"), link("b", "c"), link("c", "d"), link("d", "a"), link("x", "y")]);
        assert_eq!(nodes.names(), ["a", "b", "c", "d", "x", "y"]);
        let [a, c, d, x] = ["a", "c", "d", "x"].map(|name| nodes.find("key", name).unwrap());
        assert_eq!(
            [nodes.distance(a, a), nodes.distance(a, c), nodes.distance(a, d), nodes.distance(a, x)],
            [Some(0), Some(2), Some(1), None]
        );
        assert!(nodes.find("key", "z").unwrap_err().what.contains("expected an end of a link, of a, b"));
        assert_eq!(nodes.check_way("key", a, x).unwrap_err().what, "no links lead from \"a\" to \"x\"");
    }
}
