//! Within which ranges the statistics have to lie.

use crate::operator::Operator;
use crate::problem::{Problem, wrong};
use crate::statistic::{Statistic, statistic};
use std::fmt;
use std::str::FromStr;
use toml::{Table, Value};

/// What a statistic is told of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Everybody over the whole run.
    Run,
    /// Everybody's tries that began within a window of the scenario.
    Window(String),
    /// One class over the whole run.
    Class(String),
}

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

impl Scope {
    /// What stands before the dot; empty for the whole run.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Run => "",
            Self::Window(name) | Self::Class(name) => name,
        }
    }
}

impl Range {
    /// Whether the value lies in it; no number does not.
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

/// Reads `[accept]`: statistics of the run, and tables of those of a window or a class.
pub(crate) fn read(table: &Table, windows: &[&str], classes: &[&str]) -> Result<Vec<Accepted>, Problem> {
    let mut accepted = Vec::new();
    for (name, value) in table {
        let key = format!("accept.{name}");
        let Value::Table(inner) = value else {
            accepted.push(one(&key, name, Scope::Run, value)?);
            continue;
        };
        let scope = if windows.contains(&name.as_str()) {
            Scope::Window(name.clone())
        } else if classes.contains(&name.as_str()) {
            Scope::Class(name.clone())
        } else {
            return wrong(key, "there is no window and no class of this name");
        };
        for (name, value) in inner {
            accepted.push(one(&format!("{key}.{name}"), name, scope.clone(), value)?);
        }
    }
    Ok(accepted)
}

fn one(key: &str, name: &str, scope: Scope, value: &Value) -> Result<Accepted, Problem> {
    let statistic = statistic(name).map_err(|said| Problem::new(key, said))?;
    if !statistic.is_of(&scope) {
        return wrong(
            key,
            format!(
                "{name} is not told of {}",
                match scope {
                    Scope::Window(_) => "a window: only of the whole run",
                    Scope::Run | Scope::Class(_) => "a class: only of the whole run and of windows",
                }
            ),
        );
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
