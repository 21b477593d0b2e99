//! Counts of one request: the difference of two runs over the requests by which they differ.

use super::phase::{PHASES, Phase, TASKS, TIMERS};
use super::{Profile, component, component_of_function};
use std::collections::BTreeMap;

/// Functions that allocate memory, and those that free it.
const ALLOCATE: [&str; 5] = ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"];
const FREE: &str = "free";
/// Beginnings of functions that copy or fill memory.
const COPY: [&str; 3] = ["__memcpy", "__memmove", "__memset"];
/// Functions that read a clock: system calls under valgrind alone, which hides the page that answers without
/// one.
const CLOCK: [&str; 4] = ["clock_gettime", "gettimeofday", "__vdso_clock_gettime", "time"];
/// Less than this for each request is a start's or an end's, or a timer's.
const RARE: f64 = 0.005;

/// Totals of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// User instructions without timers.
    pub instructions: f64,
    /// User instructions of timers, in the time that one request took.
    pub timers: f64,
    /// User instructions of tasks without timers; 0 for other programs.
    pub tasks: f64,
    /// System calls, clocks left out.
    pub system_calls: f64,
    /// Reads of a clock.
    pub clock_reads: f64,
    /// Calls of functions that allocate.
    pub allocations: f64,
    /// User instructions of the allocator, freeing included.
    pub allocator: f64,
    /// User instructions that copy or fill memory.
    pub copying: f64,
}

/// Profile of one request.
#[derive(Clone, Debug)]
pub struct PerRequest {
    profile: Profile,
    requests: f64,
}

impl PerRequest {
    /// Difference of two runs that differ by `requests`.
    #[must_use]
    pub fn new(many: &Profile, few: &Profile, requests: u32) -> Self {
        Self { profile: many.minus(few), requests: f64::from(requests) }
    }

    /// Its totals.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let total = self.profile.total();
        let timers = TIMERS.calls(&self.profile).cost.instructions;
        let tasks = TASKS.calls(&self.profile).cost.instructions;
        let own = |matches: &dyn Fn(&str) -> bool| {
            let places = self.profile.own().filter(|(place, _)| matches(&place.function));
            places.map(|(_, cost)| cost.instructions).sum()
        };
        let clock_reads: i64 = self
            .profile
            .own()
            .filter(|(place, _)| is_clock(&place.function))
            .map(|(_, cost)| cost.system_calls)
            .sum();
        let allocator = self.components().into_iter().find(|(name, _)| name == "libc: allocator");
        Counts {
            instructions: self.each(total.instructions - timers),
            timers: self.each(timers),
            tasks: self.each((tasks - timers).max(0)),
            system_calls: self.each(total.system_calls - clock_reads),
            clock_reads: self.each(clock_reads),
            allocations: self.each(self.profile.calls(|function| ALLOCATE.contains(&function)).count),
            allocator: allocator.map_or(0.0, |(_, instructions)| instructions),
            copying: self.each(own(&|function| COPY.iter().any(|name| function.starts_with(name)))),
        }
    }

    /// Inclusive instructions and calls of each phase, in the order of [`PHASES`].
    #[must_use]
    pub fn phases(&self) -> Vec<(&'static str, f64, f64)> {
        let of = |phase: &Phase| {
            let calls = phase.calls(&self.profile);
            (phase.name, self.each(calls.cost.instructions), self.each(calls.count))
        };
        PHASES.iter().map(of).collect()
    }

    /// Own instructions of each component, the largest first.
    #[must_use]
    pub fn components(&self) -> Vec<(String, f64)> {
        self.by(|profile, add| {
            profile.own().for_each(|(place, cost)| add(component(place), cost.instructions));
        })
    }

    /// The same by the component of the function into which code was inlined.
    #[must_use]
    pub fn components_of_functions(&self) -> BTreeMap<String, f64> {
        let components = self.by(|profile, add| {
            profile.own().for_each(|(place, cost)| add(component_of_function(place), cost.instructions));
        });
        components.into_iter().collect()
    }

    /// Own instructions of each function, the largest first.
    #[must_use]
    pub fn functions(&self) -> Vec<(String, f64)> {
        self.by(|profile, add| {
            profile.own().for_each(|(place, cost)| add(place.function.clone(), cost.instructions));
        })
    }

    /// System calls by name, the most frequent first.
    #[must_use]
    pub fn system_calls(&self) -> Vec<(String, f64)> {
        self.by(|profile, add| {
            profile.own().filter(|(place, _)| !is_clock(&place.function)).for_each(|(place, cost)| {
                add(without_version(&place.function).to_owned(), cost.system_calls);
            });
        })
    }

    /// Functions that copy or fill memory, with the instructions that it takes; the largest first.
    #[must_use]
    pub fn copies(&self) -> Vec<(String, f64)> {
        self.by(|profile, add| {
            let copying =
                profile.pairs().filter(|(_, callee, _)| COPY.iter().any(|it| callee.starts_with(it)));
            copying.for_each(|(caller, _, calls)| add(caller.to_owned(), calls.cost.instructions));
        })
    }

    /// Functions that allocate, and how often; the most frequent first.
    #[must_use]
    pub fn allocations(&self) -> Vec<(String, f64)> {
        self.by(|profile, add| {
            let allocating = profile.pairs().filter(|(_, callee, _)| ALLOCATE.contains(callee));
            allocating.for_each(|(caller, _, calls)| add(caller.to_owned(), calls.count));
        })
    }

    /// Calls that free memory.
    #[must_use]
    pub fn frees(&self) -> f64 {
        self.each(self.profile.calls(|function| function == FREE).count)
    }

    fn by(&self, fill: impl FnOnce(&Profile, &mut dyn FnMut(String, i64))) -> Vec<(String, f64)> {
        let mut sums = BTreeMap::<String, i64>::new();
        fill(&self.profile, &mut |name, count| *sums.entry(name).or_default() += count);
        let each = sums.into_iter().map(|(name, sum)| (name, self.each(sum)));
        let mut sorted: Vec<_> = each.filter(|(_, count)| *count > RARE).collect();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
        sorted
    }

    fn each(&self, sum: i64) -> f64 {
        // Sums are far below 2^53.
        sum as f64 / self.requests
    }
}

fn is_clock(function: &str) -> bool {
    CLOCK.contains(&without_version(function))
}

/// `clock_gettime@@GLIBC_2.17` without the version.
fn without_version(function: &str) -> &str {
    function.split_once('@').map_or(function, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(requests: i64) -> Profile {
        let text = format!(
            "events: Ir sysCount\nob=/bin/a\nfl=/src/crates/http/src/serve.rs\nfn=tokio::runtime::local\n1 {0}\n\
             cfn=tokio::runtime::task::raw::poll\ncalls={1} 1\n1 {2}\n\
             fn=tokio::runtime::task::raw::poll\n1 {1}\ncfn=malloc\ncalls={3} 1\n1 {1}\n\
             cfn=flashweir_gateway::worker::sweep::{{{{closure}}}}\ncalls=1 1\n1 50\n\
             fn=flashweir_gateway::worker::sweep::{{{{closure}}}}\n1 50\n\
             ob=/lib/libc.so.6\nfl=???\nfn=malloc\n0 {1}\nfn=clock_gettime@@GLIBC_2.17\n0 0 {4}\nfn=writev\n0 0 {1}\n",
            1_000 + 10 * requests,
            requests,
            2 * requests + 50,
            3 * requests,
            5 * requests,
        );
        Profile::parse(&text).expect("a profile")
    }

    #[test]
    fn counts_are_those_of_one_request() {
        let each = PerRequest::new(&profile(600), &profile(100), 500);
        let expected = Counts {
            instructions: 12.0,
            timers: 0.0,
            tasks: 2.0,
            system_calls: 1.0,
            clock_reads: 5.0,
            allocations: 3.0,
            allocator: 1.0,
            copying: 0.0,
        };
        assert_eq!(each.counts(), expected);
        assert_eq!(each.system_calls(), [("writev".to_owned(), 1.0)]);
        assert_eq!(each.allocations(), [("tokio::runtime::task::raw::poll".to_owned(), 3.0)]);
        assert_eq!(
            each.components(),
            [("flashweir-http/serve".to_owned(), 11.0), ("libc: allocator".to_owned(), 1.0)]
        );
    }

    #[test]
    fn timers_are_no_part_of_a_request() {
        let idle = Profile::parse("events: Ir\nfn=a\n1 1000\n").expect("a profile");
        let counts = PerRequest::new(&profile(0), &idle, 1).counts();
        assert_eq!((counts.instructions, counts.timers, counts.tasks), (0.0, 50.0, 0.0));
    }
}
