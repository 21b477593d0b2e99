//! The contestants, and the settings of those that have to be tuned: searched in the same run, at 3 times the capacity.

use crate::protection::{Kind, haproxy, nginx};
use crate::stage::Stage;
use flashweir_trials::comparison::{Column, Found, OriginKind, Scene, best};

const ORIGINS: [OriginKind; 2] = [OriginKind::CpuBound, OriginKind::WorkerBound];
/// Overload and length of the crowd by which settings are judged.
const OFFERED: f64 = 3.0;
const CROWD_S: u64 = 4;

/// nginx: what the others than gold, who pass, may have of the capacity; and what may wait, in seconds of that rate.
const RATES: [f64; 4] = [0.55, 0.62, 0.7, 0.78];
const BURSTS_S: [f64; 3] = [0.1, 0.0, 0.3];
/// HAProxy: requests in flight at the origin, and how long a request may wait for that, milliseconds.
const MAXCONNS: [u32; 5] = [1, 2, 3, 4, 8];
const QUEUE_TIMEOUTS_MS: [u32; 3] = [500, 250, 1_000];

/// A column of the table, and what to start for it.
pub(crate) struct Contestant {
    pub(crate) name: String,
    about: &'static str,
    /// One for each kind of origin; absent where it cannot be run.
    kinds: Option<[Kind; 2]>,
    found: Vec<Found>,
    not_run: Option<String>,
    is_ours: bool,
    knows_gold: bool,
}

impl Contestant {
    /// What to start before an origin of this kind.
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
        let all = search(stage, origin, &RATES, &BURSTS_S, |rate, burst_s| {
            Kind::Nginx(setting(origin, rate, burst_s))
        });
        all.into_iter()
            .map(|((rate, burst_s), goodput)| (Kind::Nginx(setting(origin, rate, burst_s)), goodput))
            .collect()
    })
}

fn tuned_haproxy(stage: &Stage) -> Contestant {
    let kind = |maxconn, queue_timeout_ms| Kind::Haproxy(haproxy::Setting { maxconn, queue_timeout_ms });
    let mut contestant = fixed(stage, "HAProxy maxconn", haproxy::ABOUT, kind(1, 1_000));
    contestant.knows_gold = true;
    tune(contestant, |origin| {
        let all = search(stage, origin, &MAXCONNS, &QUEUE_TIMEOUTS_MS, kind);
        all.into_iter().map(|((maxconn, timeout), goodput)| (kind(maxconn, timeout), goodput)).collect()
    })
}

/// Replaces what a contestant starts with what `trials` (best first) finds for each origin.
fn tune(mut contestant: Contestant, mut trials: impl FnMut(OriginKind) -> Vec<(Kind, f64)>) -> Contestant {
    let Some(kinds) = &mut contestant.kinds else { return contestant };
    for origin in ORIGINS {
        let trials = trials(origin);
        let (best, _) = *trials.first().expect("the lists of settings are not empty");
        kinds[origin as usize] = best;
        contestant.found.push(Found {
            origin: name(origin).to_owned(),
            best: best.setting(),
            trials: trials.iter().map(|(kind, goodput)| (kind.setting(), *goodput)).collect(),
        });
        eprintln!("{} before the {} origin: {}", contestant.name, name(origin), best.setting());
    }
    contestant
}

fn search<A: Copy + PartialEq, B: Copy + PartialEq>(
    stage: &Stage,
    origin: OriginKind,
    first: &[A],
    second: &[B],
    kind: impl Fn(A, B) -> Kind,
) -> Vec<((A, B), f64)> {
    let scene = Scene { origin, ..Scene::overload(OFFERED, CROWD_S) };
    let try_it = |a, b| {
        let kind = kind(a, b);
        let goodput = stage.visit(&kind, &scene)?.outcome.goodput;
        eprintln!("  {}: {goodput:.2}", kind.setting());
        Ok::<_, String>(goodput)
    };
    let trials = best(first, second, second[0], try_it).expect("it started at the rehearsal");
    trials.into_iter().map(|trial| (trial.setting, trial.goodput)).collect()
}

fn name(origin: OriginKind) -> &'static str {
    match origin {
        OriginKind::CpuBound => "processor-bound",
        OriginKind::WorkerBound => "worker-bound",
    }
}
