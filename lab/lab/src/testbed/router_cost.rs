//! Cost of the router, as the kernel and the router itself account for it.

use crate::experiments::testbed::{PhaseCost, RouterCost};
use anyhow::Context as _;
use flashweir_kernel::account::{Holdings, HookPoint, held_by};
use std::time::{Duration, Instant};

/// Cost of the router so far.
pub(super) struct Account {
    at: Instant,
    processor_ns: u64,
    memory_bytes: u64,
    ticks: Ticks,
    held: Holdings,
}

/// Ticks so far, and the time they took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ticks {
    count: u64,
    sum_s: f64,
}

impl Account {
    /// Of a process whose `/metrics` say this.
    pub(super) fn of(process: u32, metrics: &str) -> anyhow::Result<Self> {
        Ok(Self {
            at: Instant::now(),
            processor_ns: processor_ns(process)?,
            memory_bytes: memory_bytes(process)?,
            ticks: Ticks::of(metrics).context("the router does not tell the time of its ticks")?,
            held: held_by(process)?,
        })
    }
}

/// Cost from one account to the next, in each phase.
pub(super) fn cost(accounts: [&Account; 3]) -> anyhow::Result<RouterCost> {
    let [begun, onset, end] = accounts;
    let flows =
        end.held.maps.iter().find(|map| map.name == "flows").context("the router has no table of flows")?;
    Ok(RouterCost {
        phases: [phase(begun, onset), phase(onset, end)],
        maps_bytes: end.held.maps.iter().map(|map| map.bytes).sum(),
        flow_bytes: flows.bytes as f64 / f64::from(flows.entries_most),
    })
}

fn phase(from: &Account, to: &Account) -> PhaseCost {
    let ticks = to.ticks.count - from.ticks.count;
    let took_ns = (to.at - from.at).as_nanos().max(1) as f64;
    PhaseCost {
        processor_percent: (to.processor_ns - from.processor_ns) as f64 / took_ns * 100.0,
        memory_bytes: to.memory_bytes,
        tick_ns: (ticks > 0).then(|| (to.ticks.sum_s - from.ticks.sum_s) * 1e9 / ticks as f64),
        gate_ns: run_ns(&from.held, &to.held, HookPoint::Xdp),
        observer_ns: run_ns(&from.held, &to.held, HookPoint::Tc),
    }
}

/// Mean time of a run of the programs at a place.
fn run_ns(from: &Holdings, to: &Holdings, hook_point: HookPoint) -> Option<f64> {
    let sum = |held: &Holdings| {
        let programs = held.programs.iter().filter(|program| program.hook_point == hook_point);
        programs.fold((0, Duration::ZERO), |(runs, took), it| (runs + it.runs, took + it.took))
    };
    let ((runs_before, took_before), (runs, took)) = (sum(from), sum(to));
    let runs = runs.checked_sub(runs_before).filter(|runs| *runs > 0)?;
    Some(took.saturating_sub(took_before).as_nanos() as f64 / runs as f64)
}

impl Ticks {
    fn of(metrics: &str) -> Option<Self> {
        let value = |part: &str| {
            let name = format!("flashweir_planner_tick_seconds_{part} ");
            metrics.lines().find_map(|line| line.strip_prefix(&name)).map(str::trim)
        };
        Some(Self { count: value("count")?.parse().ok()?, sum_s: value("sum")?.parse().ok()? })
    }
}

/// Processor time of all threads so far.
fn processor_ns(process: u32) -> anyhow::Result<u64> {
    let mut sum = 0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may end between two looks.
        let text = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        sum += text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}

fn memory_bytes(process: u32) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_kernel::account::{MapMemory, ProgramRuns};

    fn account(at: Instant, ticks: u64, packets: u64) -> Account {
        let program = |id, hook_point, runs, took_ns| ProgramRuns {
            id,
            hook_point,
            runs,
            took: Duration::from_nanos(took_ns),
        };
        let programs = vec![
            program(1, HookPoint::Xdp, packets, 100 * packets),
            program(2, HookPoint::Tc, packets, 200 * packets),
            program(3, HookPoint::Tc, packets, 300 * packets),
        ];
        let maps = [("flows", 10, 1_600), ("plans", 1, 400)];
        let map =
            |(name, entries_most, bytes): (&str, _, _)| MapMemory { name: name.into(), entries_most, bytes };
        Account {
            at,
            processor_ns: ticks * 1_000_000,
            memory_bytes: 1 << 20,
            ticks: Ticks { count: ticks, sum_s: ticks as f64 * 1e-4 },
            held: Holdings { programs, maps: maps.map(map).to_vec() },
        }
    }

    #[test]
    fn costs_are_those_between_two_accounts() {
        let start = Instant::now();
        let [begun, onset, end] = [(0, 4, 0), (10, 4, 50), (20, 9, 100)]
            .map(|(at_s, ticks, packets)| account(start + Duration::from_secs(at_s), ticks, packets));
        let cost = cost([&begun, &onset, &end]).expect("a table of flows");
        let [quiet, crowd] = cost.phases;
        assert_eq!((quiet.tick_ns, quiet.gate_ns, quiet.processor_percent), (None, Some(100.0), 0.0));
        assert!(crowd.tick_ns.is_some_and(|ns| (ns - 1e5).abs() < 1.0), "{crowd:?}");
        assert_eq!((crowd.observer_ns, crowd.processor_percent), (Some(250.0), 0.05));
        assert_eq!((cost.maps_bytes, cost.flow_bytes), (2_000, 160.0));
        assert_eq!(phase(&end, &end).gate_ns, None);
    }

    #[test]
    fn a_process_has_an_account() {
        let metrics = "flashweir_planner_tick_seconds_sum 0.5\nflashweir_planner_tick_seconds_count 2\n";
        let account = Account::of(std::process::id(), metrics).expect("our own account");
        assert!(account.processor_ns > 0 && account.memory_bytes > 1 << 20);
        let error = Account::of(std::process::id(), "").err().expect("no ticks").to_string();
        assert_eq!(error, "the router does not tell the time of its ticks");
    }

    #[test]
    fn ticks_are_read_from_metrics() {
        let text =
            "# TYPE x y\nflashweir_planner_tick_seconds_sum 0.25\nflashweir_planner_tick_seconds_count 5\n";
        assert_eq!(Ticks::of(text), Some(Ticks { count: 5, sum_s: 0.25 }));
        assert_eq!(Ticks::of("flashweir_planner_tick_seconds_sum 0.25\n"), None);
    }
}
