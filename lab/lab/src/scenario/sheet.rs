//! The statistics of all runs of a scenario, and whether they lie where they should.

use crate::scenario::accept::Range;
use crate::scenario::checked::Scenario;
use crate::scenario::packet_view::PacketView;
use crate::scenario::scope::{Scope, Within};
use crate::scenario::statistic::{STATISTICS, Statistic, View};
use crate::scenario::summary::Summary;
use flashweir_core::Duration;
use flashweir_core::measure::Histogram;
use flashweir_sim::request::{Counts, RunOutcome};

/// All statistics of a scenario's runs.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// One line for each statistic: the whole run first, then windows, classes, links, transfers and
    /// datagrams.
    pub lines: Vec<Line>,
}

/// One statistic.
#[derive(Clone, Debug)]
pub struct Line {
    /// Scope of the value.
    pub scope: Scope,
    /// Statistic of this line.
    pub statistic: &'static Statistic,
    /// Its value in each run; `None` where there was nothing to measure.
    pub values: Vec<Option<f64>>,
    /// Over all runs; `None` if any had nothing to measure.
    pub summary: Option<Summary>,
    /// Range in which its mean has to lie.
    pub accepted: Option<Range>,
}

impl Sheet {
    /// The statistics of the outcomes of a scenario's runs.
    #[must_use]
    pub fn of(scenario: &Scenario, outcomes: &[RunOutcome]) -> Self {
        let windows = scenario.windows().iter().map(|window| Scope::Window(window.name.clone()));
        let whole = |name: &str| Within { window: None, name: name.to_owned() };
        let classes = scenario.classes().map(|name| Scope::Class(whole(name)));
        let classes: Vec<_> = classes.collect();
        // Of a single class the run says it all, unless it is asked for by name.
        let is_asked = |scope: &Scope| scenario.accepted().iter().any(|accepted| accepted.scope == *scope);
        let several = classes.len() > 1;
        let classes = classes.into_iter().filter(|class| several || is_asked(class));
        let scopes = [Scope::Run].into_iter().chain(windows).chain(classes).chain(parts(scenario));
        let scopes: Vec<_> = scopes.collect();
        let lines = scopes.iter().flat_map(|scope| lines(scenario, outcomes, scope)).collect();
        Self { lines }
    }

    /// Returns whether every range is met.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.lines.iter().all(|line| line.is_ok() != Some(false))
    }

    /// Lines whose range is missed.
    pub fn missed(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.is_ok() == Some(false))
    }
}

impl Line {
    /// Returns whether the mean lies in the accepted range, if there is one. A mean that could not be
    /// measured does not.
    #[must_use]
    pub fn is_ok(&self) -> Option<bool> {
        let range = self.accepted.as_ref()?;
        Some(self.summary.is_some_and(|summary| range.contains(summary.mean)))
    }

    /// Its name, with its scope before a dot.
    #[must_use]
    pub fn name(&self) -> String {
        match self.scope.name().as_str() {
            "" => self.statistic.name.to_owned(),
            scope => format!("{scope}.{}", self.statistic.name),
        }
    }
}

/// Links, transfers and datagrams: over the run, and over the windows for which a range is said.
fn parts(scenario: &Scenario) -> Vec<Scope> {
    let whole = |name: &str| Within { window: None, name: name.to_owned() };
    let links = scenario.links().iter().map(|link| Scope::Link(whole(&link.name)));
    let transfers = scenario.transfers().map(|name| Scope::Transfer(whole(name)));
    let datagrams = scenario.datagrams().map(|name| Scope::Datagrams(whole(name)));
    let asked = scenario.accepted().iter().map(|accepted| &accepted.scope);
    let asked = asked.filter(|scope| !matches!(scope, Scope::Window(_)) && scope.window().is_some());
    let mut asked: Vec<Scope> = asked.cloned().collect();
    // Ranges of one scope are in one table of the file.
    asked.dedup();
    links.chain(transfers).chain(datagrams).chain(asked).collect()
}

fn lines(scenario: &Scenario, outcomes: &[RunOutcome], scope: &Scope) -> Vec<Line> {
    let values: Vec<Vec<Option<f64>>> =
        outcomes.iter().map(|outcome| values(scenario, outcome, scope)).collect();
    let lines = STATISTICS.iter().enumerate().filter(|(_, statistic)| statistic.is_of(scope));
    let lines = lines.map(|(place, statistic)| {
        let values: Vec<Option<f64>> = values.iter().map(|of_run| of_run[place]).collect();
        let measured: Option<Vec<f64>> = values.iter().copied().collect();
        let accepted = scenario.accepted().iter();
        let mut accepted =
            accepted.filter(|accepted| accepted.scope == *scope && accepted.statistic.name == statistic.name);
        Line {
            scope: scope.clone(),
            statistic,
            values,
            summary: measured.as_deref().and_then(Summary::of),
            accepted: accepted.next().map(|accepted| accepted.range.clone()),
        }
    });
    // Statistics of a router are left out where there is none, unless a range asks for one.
    let has_router = scenario.has_router();
    lines.filter(|line| has_router || line.accepted.is_some() || !line.statistic.needs_router()).collect()
}

/// The values of all statistics of one run, in their order; those without a value in the scope are none.
fn values(scenario: &Scenario, outcome: &RunOutcome, scope: &Scope) -> Vec<Option<f64>> {
    let mut whole = (Histogram::new(), Histogram::new(), Histogram::new());
    for class in
        outcome.classes.iter().filter(|class| matches!(scope, Scope::Run) || class.name == scope.name())
    {
        whole.0.add(&class.latency_us);
        whole.1.add(&class.refusal_us);
        whole.2.add(&class.served_us);
    }
    let run = scenario.template();
    let window = scope.window().and_then(|name| scenario.windows().iter().find(|window| window.name == name));
    let bins = window.map_or(0..usize::MAX, |window| window.bins.clone());
    // No person comes after the end of the schedule: levels are reported up to there. A run has fewer bins
    // than SIM_SERIES_BINS.
    let end = run.schedule.length().as_nanos().div_ceil(run.bin.as_nanos()) as usize;
    let levels = bins.start..bins.end.min(end);
    let mut counts = Counts::default();
    let (mut useful_s, mut revenue, mut demoted, mut demoted_longest) = (0.0, 0.0, 0, Duration::ZERO);
    // Demotions are kept by the second.
    let stretch = window.map_or(0..usize::MAX, |window| {
        window.from.as_secs() as usize..window.to.as_secs_f64().ceil() as usize
    });
    for ((class, model), worth) in outcome.classes.iter().zip(&run.classes).zip(scenario.revenues()) {
        if matches!(scope, Scope::Class(within) if within.name != class.name) {
            continue;
        }
        let mut of_class = Counts::default();
        class.bins.iter().take(bins.end).skip(bins.start).for_each(|bin| of_class.add(bin));
        counts.add(&of_class);
        let by_second = class.demotions.by_second.iter();
        demoted += by_second.take(stretch.end).skip(stretch.start).sum::<u64>();
        demoted_longest = demoted_longest.max(class.demotions.longest);
        // No word for work in a scenario depends on the size of documents.
        revenue += of_class.goodput as f64 * worth;
        useful_s += of_class.goodput as f64 * model.work.mean_s(0.0);
    }
    let seconds = window.map_or(run.schedule.length(), |window| window.to - window.from).as_secs_f64();
    let is_whole = window.is_none();
    let of_server = matches!(scope, Scope::Run | Scope::Window(_));
    let view = View {
        counts,
        demoted,
        demoted_longest,
        seconds,
        useful_s,
        revenue,
        processors: f64::from(run.server.processors.get()),
        latency_us: is_whole.then_some(&whole.0),
        refusal_us: is_whole.then_some(&whole.1),
        served_us: is_whole.then_some(&whole.2),
        level: of_server.then(|| outcome.mean_level(levels)),
        plans: &outcome.plans,
        packets: packets(scenario, outcome, scope, bins),
    };
    STATISTICS.iter().map(|statistic| statistic.value(&view)).collect()
}

/// Packets are reported over whole bins up to the end of the schedule: later ones belong to no request.
fn packets<'a>(
    scenario: &Scenario,
    outcome: &'a RunOutcome,
    scope: &Scope,
    bins: std::ops::Range<usize>,
) -> PacketView<'a> {
    let run = scenario.template();
    let end = (run.schedule.length().as_nanos() / run.bin.as_nanos()) as usize;
    let bins = bins.start..bins.end.min(end);
    let of_packets = outcome.packets.as_ref();
    of_packets.map_or_else(PacketView::default, |packets| {
        PacketView::new(packets, scenario.links(), scope, (&bins, run.bin.as_secs_f64()))
    })
}
