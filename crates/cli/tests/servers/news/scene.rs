//! An origin, a gateway before it, and the crowd's options.

use std::sync::MutexGuard;
use std::time::Duration;

use flashweir_core::measure::Useful;
use flashweir_load::{ClassPlan, LoadPlan, LoadTarget, Sources};
use flashweir_testbed::origin::account::{OriginMeter, Ruler};
use flashweir_testbed::origin::placement::Placement;
use flashweir_testkit::{Flashweir, Gateway, GatewayBuilder, Load, Origin};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};
use serde_json::Value;

use crate::news::watch::{Seen, Watch};
use crate::turn;

/// Work of each request: a capacity of some 200 a second, which leaves room for all other processes on two
/// cores.
const WORK_MS: f64 = 5.0;

const SEED: u64 = 1;

/// Everything a test needs; its turn is over when it is dropped.
pub(crate) struct Scene {
    pub(crate) gateway: Gateway,
    /// Another gateway, between that one and the origin.
    pub(crate) node: Option<Gateway>,
    origin: Origin,
    /// Requests a second the origin can do, as measured just now.
    pub(crate) capacity_rps: f64,
    _turn: MutexGuard<'static, ()>,
}

pub(crate) fn binary() -> Flashweir {
    Flashweir::new(env!("CARGO_BIN_EXE_flashweir"))
}

impl Scene {
    /// Without the sentry: behind it the origin would not notice the crowd.
    pub(crate) fn new(arguments: &[&str]) -> Self {
        Self::start(arguments, &[("sentry.policing", "off")])
    }

    /// With all defaults.
    pub(crate) fn with_the_sentry(arguments: &[&str]) -> Self {
        Self::start(arguments, &[])
    }

    /// Without the sentry and without a ceiling; the default rules are a candidate.
    pub(crate) fn with_a_candidate_alone() -> Self {
        let off = ["sentry.policing", "flash_crowd.mode"].map(|key| (key, "off"));
        Self::start(&[], &[off[0], off[1], ("flash_crowd.candidate.mode", "repaired")])
    }

    /// With all defaults, and nodes in front wherever an address is a loopback one.
    pub(crate) fn behind_nodes() -> Self {
        let mut scene = Self::start(&[], &[]);
        let node = GatewayBuilder::new(&binary()).upstream(&scene.origin.url());
        scene.gateway = node.set("feedback.senders", "[\"127.0.0.0/8\"]").start();
        scene
    }

    /// With all defaults, behind another gateway to which this one signs what it says: that one speaks with
    /// the origin.
    pub(crate) fn before_a_node() -> Self {
        let keys = "1 correct-horse-battery-staple\n";
        let with_keys = |builder: GatewayBuilder| {
            std::fs::write(builder.directory().join("feedback.keys"), keys).expect("a file");
            builder.text("feedback.keys_file", "feedback.keys")
        };
        let mut scene = Self::start(&[], &[]);
        let node = GatewayBuilder::new(&binary()).upstream(&scene.origin.url()).text("gateway.name", "node");
        let node = with_keys(node).set("feedback.senders", "[\"127.0.0.0/8\"]").start();
        let front = GatewayBuilder::new(&binary()).upstream(&format!("http://{}", node.address()));
        let front =
            front.text("gateway.name", "front").set("feedback.upstream_names", "{ front = \"node\" }");
        scene.gateway = with_keys(front).start();
        scene.node = Some(node);
        scene
    }

    fn start(arguments: &[&str], settings: &[(&str, &str)]) -> Self {
        let turn = turn::take();
        let origin = Origin::start(&binary(), WORK_MS);
        // On one core, so that the running times of its threads may be added. Others may use that core too:
        // then the origin waits, which counts as busy.
        if let Some(placement) = Placement::divide() {
            placement.give_the_origin_its_core(origin.process().id()).expect("a child may be moved");
        }
        let capacity_rps = origin.measure_capacity();
        let builder = GatewayBuilder::new(&binary()).upstream(&origin.url());
        let builder = settings.iter().fold(builder, |builder, (key, value)| builder.text(key, value));
        let gateway = arguments.iter().fold(builder, |builder, argument| builder.argument(argument)).start();
        Self { gateway, node: None, origin, capacity_rps, _turn: turn }
    }

    /// Sends people through the gateway and watches its verdict meanwhile.
    pub(crate) fn send(&self, target: &str, length: Duration, arguments: &[&str]) -> (Value, Vec<Seen>) {
        let watch = Watch::start(self.gateway.admin());
        let url = format!("http://{}{target}", self.gateway.address());
        // The patience of the last ones and the generator's own start and end.
        let within = length + Duration::from_secs(30);
        let result = Load::start(&binary(), &url, arguments).finish(within);
        (result, watch.stop())
    }

    /// Sends a crowd of three times the capacity from the fifth second to the thirteenth, with quiet before
    /// and after; what the origin did with its time from `judged_from_s` to the crowd's end.
    pub(crate) fn send_crowd(&self, judged_from_s: u64) -> (Value, Vec<Seen>, Useful) {
        let rate = |factor: f64, seconds| {
            RateProfile::constant(factor * self.capacity_rps, Duration::from_secs(seconds)).expect("a rate")
        };
        let profile = rate(0.3, 5).then(rate(3.0, 8)).then(rate(0.3, 5));
        let target = LoadTarget::parse(&format!("http://{}/work", self.gateway.address())).expect("a target");
        let class = ClassPlan::get(&target).expect("a class");
        let schedule = Schedule::one(ArrivalProcess::Poisson(profile), SEED);
        let mut plan = LoadPlan::new(target, schedule, class);
        plan.sources = Sources { count: 2_000, ..Sources::default() };

        let meter = OriginMeter::new(self.origin.process().id(), self.origin.address());
        // Readings come up to 0.2 s late; the last one is to be taken while the crowd is still there.
        let moments = [Duration::from_secs(judged_from_s), Duration::from_millis(12_700)];
        let mut ruler = Ruler::new(meter, moments);
        let watch = Watch::start(self.gateway.admin());
        let look =
            |progress: &flashweir_load::Progress| ruler.look(progress.elapsed, progress.totals.goodput);
        let result = flashweir_load::run(plan, look).expect("a run");
        let seen = watch.stop();
        let useful = ruler.useful(0, 1).expect("the origin's account");
        println!("useful {:.3}, capacity {:.0}/s: {useful:?}", useful.useful(), self.capacity_rps);
        (serde_json::to_value(&result).expect("JSON"), seen, useful)
    }

    /// URL of the origin.
    pub(crate) fn origin_url(&self) -> String {
        self.origin.url()
    }

    /// A rate that is `factor` times the origin's capacity, as an option.
    pub(crate) fn times_capacity(&self, factor: f64) -> String {
        format!("{:.1}", self.capacity_rps * factor)
    }
}

/// A count of the result.
pub(crate) fn count(result: &Value, key: &str) -> u64 {
    result[key].as_u64().unwrap_or_else(|| panic!("no {key}: {result}"))
}

/// A count of the result over some seconds of the run.
pub(crate) fn count_between(result: &Value, key: &str, seconds: std::ops::Range<u64>) -> u64 {
    let series = result["series"].as_array().unwrap_or_else(|| panic!("no series: {result}"));
    let within =
        series.iter().filter(|second| second["second"].as_u64().is_some_and(|at| seconds.contains(&at)));
    within.map(|second| count(second, key)).sum()
}
