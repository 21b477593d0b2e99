//! Profiles as callgrind writes them with `--compress-strings=no --compress-pos=no --collect-systime=yes`.
//!
//! A record is `fl=` (file) and `fn=` (function), then lines `LINE COST...`. `fi=` and `fe=` name the file of
//! the lines that follow: code inlined from elsewhere counts where it was written. A line `calls=COUNT ...`
//! after `cfn=` (callee) makes the next line the callee's inclusive cost, which is no cost of the function
//! itself.

use std::collections::BTreeMap;
use std::ops::{AddAssign, Sub};
use thiserror::Error;

/// Event of instructions read, and of system calls.
const INSTRUCTIONS: &str = "Ir";
const SYSTEM_CALLS: &str = "sysCount";
/// File of code without debug information.
const UNKNOWN_FILE: &str = "???";

/// Instructions and system calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// User instructions.
    pub instructions: i64,
    /// System calls.
    pub system_calls: i64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.instructions += other.instructions;
        self.system_calls += other.system_calls;
    }
}

impl Sub for Cost {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            instructions: self.instructions - other.instructions,
            system_calls: self.system_calls - other.system_calls,
        }
    }
}

/// Place where code was written, and the function that it became part of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Program or library.
    pub object: String,
    /// Source file; empty where there is no debug information.
    pub file: String,
    /// Function, without hash.
    pub function: String,
}

/// Calls of one function by another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Number of calls.
    pub count: i64,
    /// Inclusive cost of the callee.
    pub cost: Cost,
}

/// Costs by place, and calls by caller and callee.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    own: BTreeMap<Place, Cost>,
    calls: BTreeMap<(String, String), Calls>,
}

/// Error in a profile.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ProfileError {
    /// A line that is none of callgrind's.
    #[error("line {0}: expected a line of callgrind's format without compressed names (is {1:?})")]
    Line(usize, String),
    /// No instructions were counted.
    #[error("no event `Ir`, or no cost: the program ended before callgrind could write")]
    Empty,
}

/// Position in a profile that is being read.
#[derive(Default)]
struct Reader {
    profile: Profile,
    object: String,
    function_file: String,
    file: String,
    function: String,
    callee: String,
    /// Calls whose inclusive cost is in the next line.
    calls: Option<i64>,
    instructions_at: usize,
    system_calls_at: Option<usize>,
}

impl Profile {
    /// Reads what callgrind wrote.
    ///
    /// # Errors
    /// At the first line that is not understood; and if there is no cost at all.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let mut reader = Reader::default();
        for (number, line) in text.lines().enumerate() {
            reader.line(line).ok_or_else(|| ProfileError::Line(number + 1, line.to_owned()))?;
        }
        match reader.profile.own.is_empty() {
            true => Err(ProfileError::Empty),
            false => Ok(reader.profile),
        }
    }

    /// Difference of this profile and `other`, which was taken of fewer requests.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut difference = self.clone();
        for (place, cost) in &other.own {
            let own = difference.own.entry(place.clone()).or_default();
            *own = *own - *cost;
        }
        for (pair, calls) in &other.calls {
            let own = difference.calls.entry(pair.clone()).or_default();
            *own = Calls { count: own.count - calls.count, cost: own.cost - calls.cost };
        }
        difference
    }

    /// Cost of all.
    #[must_use]
    pub fn total(&self) -> Cost {
        sum(self.own.values().copied())
    }

    /// Costs by place.
    pub fn own(&self) -> impl Iterator<Item = (&Place, Cost)> {
        self.own.iter().map(|(place, cost)| (place, *cost))
    }

    /// Calls by caller and callee.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str, Calls)> {
        self.calls.iter().map(|((caller, callee), calls)| (caller.as_str(), callee.as_str(), *calls))
    }

    /// Calls of functions for which `matches` holds, by others.
    #[must_use]
    pub fn calls(&self, matches: impl Fn(&str) -> bool) -> Calls {
        let mut all = Calls::default();
        for ((caller, callee), calls) in &self.calls {
            if matches(callee) && !matches(caller) {
                all.count += calls.count;
                all.cost += calls.cost;
            }
        }
        all
    }
}

fn sum(costs: impl Iterator<Item = Cost>) -> Cost {
    costs.fold(Cost::default(), |mut all, cost| {
        all += cost;
        all
    })
}

impl Reader {
    /// Reads one line; none if it is not understood.
    fn line(&mut self, line: &str) -> Option<()> {
        if line.starts_with(|first: char| first.is_ascii_digit()) {
            return self.cost(line);
        }
        if let Some((key, value)) = line.split_once('=') {
            return self.name(key, value);
        }
        if let Some(events) = line.strip_prefix("events:") {
            let at = |event| events.split_whitespace().position(|it| it == event);
            self.instructions_at = at(INSTRUCTIONS)?;
            self.system_calls_at = at(SYSTEM_CALLS);
            return Some(());
        }
        // Header lines are `KEY: VALUE`.
        (line.is_empty() || line.starts_with('#') || line.contains(':')).then_some(())
    }

    fn name(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "ob" => value.clone_into(&mut self.object),
            "fl" => {
                self.function_file = file(value);
                self.file.clone_from(&self.function_file);
            }
            "fi" | "fe" => self.file = file(value),
            "fn" => {
                self.function = function(value);
                self.file.clone_from(&self.function_file);
            }
            "cfn" => self.callee = function(value),
            "calls" => self.calls = Some(value.split_whitespace().next()?.parse().ok()?),
            "cob" | "cfi" | "cfl" => {}
            // A command line in the header may have one, too.
            _ if key.contains(':') => {}
            _ => return None,
        }
        Some(())
    }

    fn cost(&mut self, line: &str) -> Option<()> {
        let costs: Vec<i64> =
            line.split_whitespace().skip(1).map(str::parse).collect::<Result<_, _>>().ok()?;
        // Zeros at the end of a line are left out.
        let at = |place: usize| costs.get(place).copied().unwrap_or(0);
        let cost =
            Cost { instructions: at(self.instructions_at), system_calls: self.system_calls_at.map_or(0, at) };
        if let Some(count) = self.calls.take() {
            let pair = (self.function.clone(), self.callee.clone());
            let calls = self.profile.calls.entry(pair).or_default();
            calls.count += count;
            calls.cost += cost;
            return Some(());
        }
        let place =
            Place { object: self.object.clone(), file: self.file.clone(), function: self.function.clone() };
        *self.profile.own.entry(place).or_default() += cost;
        Some(())
    }
}

fn file(name: &str) -> String {
    if name == UNKNOWN_FILE { String::new() } else { name.to_owned() }
}

/// Name of a function without its hash and without the level of a recursion; closures of both ways to mangle
/// are written alike.
fn function(name: &str) -> String {
    let name = name.rsplit_once('\'').filter(|(_, level)| is_number(level)).map_or(name, |(name, _)| name);
    let is_hash = |hash: &str| hash.len() == 16 && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
    let name = name.rsplit_once("::h").filter(|(_, hash)| is_hash(hash)).map_or(name, |(name, _)| name);
    let mut plain = name.replace("{{closure}}", "{closure}");
    while let Some(at) = plain.find("{closure#") {
        let end = plain[at..].find('}').map_or(plain.len(), |length| at + length);
        plain.replace_range(at..end, "{closure");
    }
    plain
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\n\
        cmd: flashweir run --url=http://127.0.0.1\npart: 1\n\ndesc: I1 cache: \ndesc: Option: --x=y\n\
        positions: line\nevents: Ir sysCount sysTime\nsummary: 150 2 9\n\n\
        ob=/usr/bin/flashweir\nfl=/src/crates/gateway/src/worker.rs\n\
        fn=flashweir_gateway::worker::run::h0123456789abcdef\n16 20\n\
        fi=/src/crates/core/src/time.rs\n3 12\nfe=/src/crates/gateway/src/worker.rs\n17 3\n\
        cob=/lib/libc.so.6\ncfi=???\ncfn=malloc\ncalls=4 0\n17 100\n\n\
        ob=/lib/libc.so.6\nfl=???\nfn=malloc\n0 98\nfn=write\n0 15 2 9\nfn=malloc'2\n0 2\n\ntotals: 150 2 9\n";

    #[test]
    fn own_costs_go_to_the_file_in_which_code_was_written() {
        let profile = Profile::parse(SAMPLE).expect("a profile");
        assert_eq!(profile.total(), Cost { instructions: 150, system_calls: 2 });
        let own: Vec<(&str, &str, i64)> = profile
            .own()
            .map(|(place, cost)| (place.file.as_str(), place.function.as_str(), cost.instructions))
            .collect();
        let run = "flashweir_gateway::worker::run";
        assert_eq!(
            own,
            [
                ("", "malloc", 100),
                ("", "write", 15),
                ("/src/crates/core/src/time.rs", run, 12),
                ("/src/crates/gateway/src/worker.rs", run, 23),
            ]
        );
    }

    #[test]
    fn calls_are_counted_with_the_cost_of_the_callee() {
        let profile = Profile::parse(SAMPLE).expect("a profile");
        let calls = profile.calls(|function| function == "malloc");
        assert_eq!((calls.count, calls.cost.instructions), (4, 100));
        assert_eq!(profile.calls(|_| true), Calls::default(), "from outside alone");
    }

    #[test]
    fn a_difference_has_what_one_run_has_more() {
        let profile = Profile::parse(SAMPLE).expect("a profile");
        let more = Profile::parse(&SAMPLE.replace("16 20", "16 50").replace("calls=4", "calls=9"));
        let difference = more.expect("a profile").minus(&profile);
        assert_eq!(difference.total().instructions, 30);
        assert_eq!(difference.calls(|function| function == "malloc").count, 5);
    }

    #[test]
    fn closures_of_both_manglings_have_one_name() {
        assert_eq!(function("a::b::{{closure}}::h0123456789abcdef"), "a::b::{closure}");
        assert_eq!(function("a::b::{closure#0}::{closure#12}"), "a::b::{closure}::{closure}");
        assert_eq!(function("<a::B<'_>>::c'2"), "<a::B<'_>>::c");
    }

    #[test]
    fn other_texts_are_errors() {
        assert_eq!(Profile::parse("events: Ir\n"), Err(ProfileError::Empty));
        let line = Profile::parse("events: Ir\nfn=a\nx y z\n");
        assert_eq!(line, Err(ProfileError::Line(3, "x y z".to_owned())));
    }
}
