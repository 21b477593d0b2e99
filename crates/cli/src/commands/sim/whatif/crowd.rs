//! The requests of a log as the people of a simulation: the documents asked for most are classes of their own.

use anyhow::{Context as _, ensure};
use flashweir_core::limits::RECORDED_REQUESTS;
use flashweir_core::{Duration, Rng};
use flashweir_sim::request::{ClassModel, Work};
use flashweir_workload::documents::{Popularity, Sizes};
use flashweir_workload::recording::Recording;
use flashweir_workload::{ArrivalProcess, Schedule, Share, Stream};

/// Documents told one by one; the rest is told together.
const TOLD: usize = 40;
/// How long somebody waits for an answer. Logs do not tell.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// A copy comes at most so much later than its original: logs have whole seconds.
const SPREAD_S: f64 = 1.0;

/// Who comes, class by class.
#[derive(Debug)]
pub(super) struct Crowd {
    pub(super) classes: Vec<ClassModel>,
    pub(super) length: Duration,
    /// When the people of each class come, and what they ask for.
    comings: Vec<Vec<(Duration, u32)>>,
}

impl Crowd {
    /// The requests of a log, `scale` times as many.
    ///
    /// # Errors
    /// More of them than are kept, or none.
    pub(super) fn new(recording: &Recording, scale: f64, work: Duration) -> anyhow::Result<Self> {
        let expected = recording.moments().len() as f64 * scale;
        ensure!(
            expected <= RECORDED_REQUESTS as f64,
            "--scale: {expected:.0} requests are more than {RECORDED_REQUESTS}"
        );
        let counts = recording.popularity_counts();
        let mut by_count: Vec<u32> = (0..).take(counts.len()).collect();
        by_count.sort_by_key(|document| std::cmp::Reverse(counts[*document as usize]));
        let told = &by_count[..by_count.len().min(TOLD)];
        // The class of each document; those that are told together come last.
        let mut class_of = vec![told.len(); counts.len()];
        told.iter().enumerate().for_each(|(class, document)| class_of[*document as usize] = class);
        let mut comings = vec![Vec::new(); told.len() + 1];
        let mut dice = Rng::new(1);
        for (moment, document) in recording.moments().iter().zip(recording.documents().iter()) {
            // Whole copies, and one more with the chance of the fraction.
            let copies = (scale + dice.unit_f64()) as u64;
            for copy in 0..copies {
                let later = if copy == 0 { 0.0 } else { SPREAD_S * dice.unit_f64() };
                let moment = (*moment + Duration::from_secs_f64(later)).min(recording.length());
                comings[class_of[*document as usize]].push((moment, *document));
            }
        }
        comings.iter_mut().for_each(|coming| coming.sort_unstable());
        let work = Work::Exponential { mean: work };
        let names = told.iter().map(|document| name(recording, *document)).chain(["all others".to_owned()]);
        let classes = names.zip(&comings).map(|(name, coming)| {
            let documents: Vec<u32> = coming.iter().map(|(_, document)| *document).collect();
            let bytes =
                documents.first().and_then(|document| recording.document(*document)).map_or(0, |it| it.bytes);
            ClassModel {
                popularity: Popularity::Recorded(documents.into()),
                sizes: Sizes::Constant(bytes),
                timeout: TIMEOUT,
                ..ClassModel::new(name, work)
            }
        });
        let crowd = Self { classes: classes.collect(), length: recording.length(), comings };
        ensure!(crowd.comings.iter().any(|coming| !coming.is_empty()), "--scale {scale} leaves nobody");
        Ok(crowd)
    }

    /// When they come.
    ///
    /// # Errors
    /// None that a log can cause.
    pub(super) fn schedule(&self) -> anyhow::Result<Schedule> {
        let streams =
            self.comings.iter().zip(0..).filter(|(coming, _)| !coming.is_empty()).map(|(coming, class)| {
                let moments: Vec<Duration> = coming.iter().map(|(moment, _)| *moment).collect();
                let arrivals = ArrivalProcess::given_within(moments, self.length)?;
                Ok(Stream { arrivals, classes: vec![Share { class, weight: 1.0 }] })
            });
        let streams = streams.collect::<Result<Vec<_>, flashweir_workload::ArrivalError>>()?;
        Schedule::new(streams, 1).context("the log makes no schedule")
    }

    /// Minutes, or hours of a log that goes on for days.
    pub(super) fn bin(&self) -> Duration {
        Duration::from_secs(if self.length > DAY { 3_600 } else { 60 })
    }
}

fn name(recording: &Recording, document: u32) -> String {
    recording
        .document(document)
        .map(|document| format!("{} {}", document.method, document.path))
        .unwrap_or_default()
}

const DAY: Duration = Duration::from_secs(24 * 3_600);
