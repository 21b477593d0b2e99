//! The contestants, and the settings of those that have to be tuned: searched in the same run, at 3 times the
//! capacity.

use crate::protection::{Kind, haproxy, nginx};
use crate::stage::Stage;
use flashweir_load::trials::comparison::{
    Column, Knob, OriginKind, Scene, SearchResult, Trial, TunedSetting, best,
};

const ORIGINS: [OriginKind; 2] = [OriginKind::CpuBound, OriginKind::WorkerBound];
/// Overload and length of the crowd by which settings are judged.
const OFFERED: f64 = 3.0;
const CROWD_S: u64 = 4;

/// nginx: what the others than gold, who pass, may have of the capacity; and what may wait, in seconds of
/// that rate.
const RATES: Knob<'_, f64> = Knob {
    grid: &[0.55, 0.62, 0.7, 0.78],
    below: |rate| Some(rate - RATE_STEP).filter(|&rate| rate > 0.0),
    above: |rate| Some(rate + RATE_STEP),
};
const RATE_STEP: f64 = 0.08;
const BURSTS_S: Knob<'_, f64> =
    Knob { grid: &[0.1, 0.0, 0.3], below: |_| None, above: |burst_s| Some(burst_s * 2.0) };
/// HAProxy: requests in flight at the origin, and how long a request may wait for that, milliseconds.
const MAXCONNS: Knob<'_, u32> = Knob {
    grid: &[1, 2, 3, 4, 8],
    below: |maxconn| Some(maxconn - 1).filter(|&maxconn| maxconn > 0),
    above: |maxconn| Some(maxconn * 2),
};
const QUEUE_TIMEOUTS_MS: Knob<'_, u32> = Knob {
    grid: &[500, 250, 1_000],
    below: |ms| Some(ms / 2).filter(|&ms| ms > 0),
    above: |ms| Some(ms * 2),
};

/// A column of the table, and what to start for it.
pub(crate) struct Contestant {
    pub(crate) name: String,
    about: &'static str,
    /// One for each kind of origin; absent where it cannot be run.
    kinds: Option<[Kind; 2]>,
    found: Vec<TunedSetting>,
    not_run: Option<String>,
    is_ours: bool,
    knows_gold: bool,
}

impl Contestant {
    /// Protection to start before an origin of this kind.
    pub(crate) fn kind(&self, origin: OriginKind) -> Option<Kind> {
        self.kinds.map(|kinds| kinds[origin as usize])
    }

    pub(crate) fn into_column(self) -> Column {
        let Self { name, about, found, not_run, is_ours, knows_gold, .. } = self;
        Column { name, about: about.to_owned(), is_ours, knows_gold, found, not_run }
    }
}

/// All of them, tuned.
pub(crate) fn contestants(stage: &Stage) -> Vec<Contestant> {
    vec![
        fixed(stage, "nothing", "the crowd straight at the origin.", Kind::Nothing),
        tuned_nginx(stage),
        tuned_haproxy(stage),
        fixed(stage, "Envoy adaptive concurrency", crate::protection::envoy::ABOUT, Kind::Envoy),
        Contestant {
            is_ours: true,
            ..fixed(
                stage,
                "Flashweir",
                "nothing said but where the upstream is (`--upstream`).",
                Kind::Flashweir,
            )
        },
        Contestant {
            is_ours: true,
            knows_gold: true,
            ..fixed(
                stage,
                "Flashweir, three classes",
                crate::protection::flashweir::ABOUT_CLASSES,
                Kind::FlashweirClasses,
            )
        },
    ]
}

fn fixed(stage: &Stage, name: &str, about: &'static str, kind: Kind) -> Contestant {
    let not_run = stage.rehearse(&kind).err();
    if let Some(why) = &not_run {
        eprintln!("{name}: not run: {why}");
    }
    Contestant {
        name: name.to_owned(),
        about,
        kinds: not_run.is_none().then_some([kind; 2]),
        found: Vec::new(),
        not_run,
        is_ours: false,
        knows_gold: false,
    }
}

fn tuned_nginx(stage: &Stage) -> Contestant {
    let setting = |origin: OriginKind, rate: f64, burst_s: f64| {
        let rate_rps = rate * stage.capacity_rps(origin);
        nginx::Setting { rate_rps, burst: (burst_s * rate_rps).round() as u32 }
    };
    let mut contestant =
        fixed(stage, "nginx limit_req", nginx::ABOUT, Kind::Nginx(setting(OriginKind::CpuBound, 1.0, 1.0)));
    contestant.knows_gold = true;
    tune(contestant, |origin| {
        search(stage, origin, RATES, BURSTS_S, |rate, burst_s| Kind::Nginx(setting(origin, rate, burst_s)))
    })
}

fn tuned_haproxy(stage: &Stage) -> Contestant {
    let kind = |maxconn, queue_timeout_ms| Kind::Haproxy(haproxy::Setting { maxconn, queue_timeout_ms });
    let mut contestant = fixed(stage, "HAProxy maxconn", haproxy::ABOUT, kind(1, 1_000));
    contestant.knows_gold = true;
    tune(contestant, |origin| search(stage, origin, MAXCONNS, QUEUE_TIMEOUTS_MS, kind))
}

/// Replaces what a contestant starts with what a search finds for each origin.
fn tune(mut contestant: Contestant, mut search: impl FnMut(OriginKind) -> SearchResult<Kind>) -> Contestant {
    let Some(kinds) = &mut contestant.kinds else { return contestant };
    for origin in ORIGINS {
        let SearchResult { trials, is_at_edge } = search(origin);
        let best = trials.first().expect("the lists of settings are not empty").setting;
        kinds[origin as usize] = best;
        contestant.found.push(TunedSetting {
            origin: name(origin).to_owned(),
            best: best.setting(),
            trials: trials.iter().map(|trial| (trial.setting.setting(), trial.score)).collect(),
            is_at_edge,
        });
        eprintln!("{} before the {} origin: {}", contestant.name, name(origin), best.setting());
    }
    contestant
}

fn search<A: Copy + PartialOrd, B: Copy + PartialOrd>(
    stage: &Stage,
    origin: OriginKind,
    first: Knob<'_, A>,
    second: Knob<'_, B>,
    kind: impl Fn(A, B) -> Kind,
) -> SearchResult<Kind> {
    let scene = Scene { origin, ..Scene::overload(OFFERED, CROWD_S) };
    let try_it = |a, b| {
        let kind = kind(a, b);
        let outcome = stage.visit(&kind, &scene)?.outcome;
        // A machine that became faster since its capacity was measured would make a setting look better.
        let score = outcome.useful.unwrap_or(outcome.goodput);
        eprintln!("  {}: {score:.3}", kind.setting());
        Ok::<_, String>(score)
    };
    let SearchResult { trials, is_at_edge } =
        best(first, second, try_it).expect("it started at the rehearsal");
    let of_kind = |Trial { setting: (a, b), score }| Trial { setting: kind(a, b), score };
    SearchResult { trials: trials.into_iter().map(of_kind).collect(), is_at_edge }
}

fn name(origin: OriginKind) -> &'static str {
    match origin {
        OriginKind::CpuBound => "processor-bound",
        OriginKind::WorkerBound => "worker-bound",
    }
}
