//! One run: a fresh origin, a fresh protection before it, and all phases.

use crate::crowd::Crowd;
use crate::front::Front;
use crate::loss::Lost;
use crate::on_core::CoreRuler;
use crate::protection::{Kind as Start, Tools};
use crate::running::Running;
use crate::streams;
use flashweir_load::trials::origins::{Protection, Share};
use flashweir_load::trials::slow::{
    EARLY_S, Early, Kind, KindResult, Loss, Phase, PhaseResult, SlowRun, Speaks, StreamRecord,
};
use flashweir_load::{LoadPlan, LoadResult};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Time between the plan and its first request.
const LEAD: Duration = Duration::from_millis(500);

/// Parts that all runs share.
pub(crate) struct Visits {
    pub(crate) tools: Tools,
    /// File of the gateway's plan, look by look.
    pub(crate) trace: Option<PathBuf>,
}

/// Observations of the clients of all kinds.
struct Seen {
    load: LoadResult,
    streams: BTreeMap<&'static str, Vec<StreamRecord>>,
}

impl Visits {
    /// Sends the crowd; `start` is what to start unless it is Flashweir. Why not, if something does not
    /// start, or cannot be sent or read.
    pub(crate) fn visit(
        &self,
        protection: Protection,
        start: Start,
        crowd: &Crowd,
        round: usize,
    ) -> Result<SlowRun, String> {
        let running = Running::start(crowd.origin)?;
        let front = Front::start(&self.tools, protection, start, running.application.address)?;
        let judged = crowd.judged();
        let mut ruler = CoreRuler::new(&running.application, judged.as_flattened());
        let seen = send(&running, front.address(), crowd, &mut ruler)?;
        let name = format!("slow-{}-{}", crowd.origin.key(), round + 1);
        let trace = self.trace.as_deref().map(|folder| (folder, name.as_str()));
        let beliefs = front.stop(seen.load.started, &judged, trace);
        let mut phases = Vec::new();
        for (((phase, from, to), belief), number) in crowd.phases().into_iter().zip(beliefs).zip(0..) {
            let kinds = |from, to| -> Vec<KindResult> {
                crowd.origin.kinds().iter().map(|kind| seen.of(kind, from, to)).collect()
            };
            phases.push(PhaseResult {
                phase,
                share: share(crowd, phase, &ruler, number)?,
                kinds: kinds(from, to),
                early: (phase == Phase::Calm).then(|| early(&kinds(from, to.min(EARLY_S)))),
                belief,
            });
        }
        Ok(SlowRun { protection, phases, is_spoilt: seen.load.saturated })
    }
}

impl Seen {
    fn of(&self, kind: &Kind, from: u64, to: u64) -> KindResult {
        match self.streams.get(kind.name) {
            Some(streams) => KindResult::of_streams(kind, streams, from, to),
            None => {
                let tally = self.load.classes.get(kind.name).cloned().unwrap_or_default();
                KindResult::of(kind, &tally, from, to)
            }
        }
    }
}

fn early(kinds: &[KindResult]) -> Early {
    let sum = |of: fn(&KindResult) -> u64| kinds.iter().map(of).sum();
    Early { offered: sum(|kind| kind.offered), refused: sum(|kind| kind.refused) }
}

/// Shares of the core's time in a phase; `None` for an origin that only waits.
fn share(crowd: &Crowd, phase: Phase, ruler: &CoreRuler, number: usize) -> Result<Option<Share>, String> {
    let (from, to) = (2 * number, 2 * number + 1);
    if !crowd.origin.is_work() {
        return Ok(None);
    }
    if phase == Phase::Loss && crowd.origin.loss() == Some(Loss::Neighbour) {
        return ruler.share_by_account(from, to).map(Some);
    }
    ruler.share(from, to).map(|(share, _)| Some(share))
}

/// Sends requests of all kinds to `address`, and takes capacity from the origin when its time has come.
fn send(
    running: &Running,
    address: SocketAddr,
    crowd: &Crowd,
    ruler: &mut CoreRuler,
) -> Result<Seen, String> {
    let begins = Instant::now() + LEAD;
    let plan = crowd.plan(address).map_err(|error| error.to_string())?;
    let plan = LoadPlan { start_at: Some(SystemTime::now() + LEAD), ..plan };
    thread::scope(|scope| {
        let streaming: Vec<_> = crowd
            .origin
            .kinds()
            .iter()
            .filter(|kind| kind.speaks != Speaks::Http)
            .map(|kind| (kind.name, scope.spawn(move || streams::run(kind, crowd, address, begins))))
            .collect();
        let changes = scope.spawn(|| change(running, crowd, begins));
        let load = flashweir_load::run(plan, |progress| ruler.look(progress));
        let is_changed = changes.join().map_err(|_| "the change of capacity failed".to_owned())?;
        let mut streams = BTreeMap::new();
        for (name, client) in streaming {
            let records = client.join().map_err(|_| "a client of streams failed".to_owned())?;
            streams.insert(name, records.map_err(|error| error.to_string())?);
        }
        is_changed?;
        Ok(Seen { load: load.map_err(|error| error.to_string())?, streams })
    })
}

/// Takes capacity in the last phase, where there is one, and has the long polls answered at the end. Why not,
/// if it could not.
fn change(running: &Running, crowd: &Crowd, begins: Instant) -> Result<(), String> {
    let ends = begins + crowd.length();
    let phases = crowd.phases();
    let loss = phases.iter().find(|(phase, ..)| *phase == Phase::Loss);
    if let Some(((_, from, _), loss)) = loss.zip(crowd.origin.loss()) {
        wait_until(begins + Duration::from_secs(*from));
        let lost = Lost::begin(loss, running).ok_or("no capacity could be taken from the origin")?;
        wait_until(ends);
        drop(lost);
    }
    wait_until(ends);
    running.announce_news();
    Ok(())
}

/// The schedule of changes is the moment itself: there is nothing else to wait for.
fn wait_until(moment: Instant) {
    while let Some(left) = moment.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        thread::park_timeout(left);
    }
}
