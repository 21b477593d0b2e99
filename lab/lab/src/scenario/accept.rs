//! Within which ranges the statistics have to lie.

use crate::scenario::problem::{Problem, wrong};
use crate::scenario::scope::{Scope, Within};
use crate::scenario::statistic::{Statistic, statistic};
use flashweir_workload::Operator;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use toml::{Table, Value};

/// A range of numbers, written `>= 0.9`, `< 500` or `> 1, <= 3`.
#[derive(Clone, Debug, PartialEq)]
pub struct Range(Vec<(Operator, f64)>);

/// A statistic and where it has to lie.
#[derive(Clone, Debug)]
pub(crate) struct Accepted {
    pub(crate) scope: Scope,
    pub(crate) statistic: &'static Statistic,
    pub(crate) range: Range,
}

impl Range {
    /// Returns whether the value lies in it; no number does not.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.0.iter().all(|(operator, bound)| operator.holds(value, *bound))
    }
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(|part| condition(part.trim())).collect::<Option<_>>().map(Self).ok_or_else(|| {
            format!("\"{text}\" is no range: expected one of >= <= == > < and a number, like \">= 0.9\" or \"> 1, <= 3\"")
        })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (operator, bound)) in self.0.iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            write!(f, "{comma}{} {bound}", operator.sign())?;
        }
        Ok(())
    }
}

fn condition(text: &str) -> Option<(Operator, f64)> {
    let (operator, bound) = Operator::read(text)?;
    let bound: f64 = bound.trim().parse().ok()?;
    bound.is_finite().then_some((operator, bound))
}

/// The names that may stand before a dot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    pub(crate) windows: &'a [&'a str],
    pub(crate) classes: &'a [&'a str],
    pub(crate) links: &'a [&'a str],
    pub(crate) transfers: &'a [&'a str],
    pub(crate) datagrams: &'a [&'a str],
}

/// Reads `[accept]`: statistics of the run, and tables of those of a window, a class or a part of the
/// network, the last two also within a window.
pub(crate) fn read(table: &Table, names: Names<'_>) -> Result<Vec<Accepted>, Problem> {
    let mut accepted = Vec::new();
    for (name, value) in table {
        let key = format!("accept.{name}");
        match value {
            Value::Table(inner) => read_scope(&mut accepted, &key, names.scope(&key, name)?, inner, names)?,
            _ => accepted.push(one(&key, name, Scope::Run, value)?),
        }
    }
    Ok(accepted)
}

fn read_scope(
    accepted: &mut Vec<Accepted>,
    key: &str,
    scope: Scope,
    table: &Table,
    names: Names<'_>,
) -> Result<(), Problem> {
    for (name, value) in table {
        let key = format!("{key}.{name}");
        let (Value::Table(inner), Scope::Window(window)) = (value, &scope) else {
            accepted.push(one(&key, name, scope.clone(), value)?);
            continue;
        };
        let Some(part) = names.part(name, Some(window)) else {
            return wrong(key, "there is no class, link, transfer or source of datagrams of this name");
        };
        for (name, value) in inner {
            accepted.push(one(&format!("{key}.{name}"), name, part.clone(), value)?);
        }
    }
    Ok(())
}

impl Names<'_> {
    fn scope(&self, key: &str, name: &str) -> Result<Scope, Problem> {
        if self.windows.contains(&name) {
            return Ok(Scope::Window(name.to_owned()));
        }
        self.part(name, None).ok_or_else(|| {
            Problem::new(key, "there is no window, class, link, transfer or source of datagrams of this name")
        })
    }

    fn part(&self, name: &str, window: Option<&str>) -> Option<Scope> {
        let within = || Within { window: window.map(str::to_owned), name: name.to_owned() };
        if self.classes.contains(&name) {
            Some(Scope::Class(within()))
        } else if self.links.contains(&name) {
            Some(Scope::Link(within()))
        } else if self.transfers.contains(&name) {
            Some(Scope::Transfer(within()))
        } else {
            self.datagrams.contains(&name).then(|| Scope::Datagrams(within()))
        }
    }

    /// That no name stands for two things.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let kinds = [
            ("class", "a class", self.classes),
            ("link", "a link", self.links),
            ("transfer", "a transfer", self.transfers),
            ("datagrams", "a source of datagrams", self.datagrams),
        ];
        let mut known: BTreeMap<&str, &str> = BTreeMap::new();
        for (table, kind, names) in kinds {
            for (index, name) in names.iter().enumerate() {
                if let Some(other) = known.insert(name, kind) {
                    let problem = format!("{other} is called \"{name}\" already");
                    return wrong(format!("{table}[{index}].name"), problem);
                }
            }
        }
        let taken = self.windows.iter().find_map(|name| known.get(name).map(|kind| (name, kind)));
        match taken {
            Some((name, kind)) => wrong(format!("window.{name}"), format!("{kind} has this name already")),
            None => Ok(()),
        }
    }
}

fn one(key: &str, name: &str, scope: Scope, value: &Value) -> Result<Accepted, Problem> {
    let statistic = statistic(name).map_err(|said| Problem::new(key, said))?;
    if !statistic.is_of(&scope) {
        return wrong(key, format!("{name} is not told of {}, but of {}", scope.kind(), statistic.scopes()));
    }
    let Value::String(text) = value else {
        return wrong(key, "expected a range in quotes, like \">= 0.9\"");
    };
    let range = text.parse().map_err(|said| Problem::new(key, said))?;
    Ok(Accepted { scope, statistic, range })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_one_or_two_ends() {
        let range: Range = "> 1, <= 3".parse().unwrap();
        assert_eq!(
            [1.0, 1.5, 3.0, 3.1, f64::NAN].map(|value| range.contains(value)),
            [false, true, true, false, false]
        );
        assert_eq!(range.to_string(), "> 1, <= 3");
        assert!(
            ">=0.9".parse::<Range>().unwrap().contains(0.9) && "==0".parse::<Range>().unwrap().contains(0.0)
        );
        for wrong in ["", "0.9", ">", "> x", "=> 1", "> 1,", "> inf", "> 1 < 2"] {
            assert!(wrong.parse::<Range>().unwrap_err().contains("is no range"), "{wrong}");
        }
    }
}
