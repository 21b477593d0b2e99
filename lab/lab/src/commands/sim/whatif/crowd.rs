//! The requests of a log as the people of a simulation: the documents asked for most are classes of their
//! own.

use anyhow::{Context as _, ensure};
use flashweir_admission::flash_crowd::CeilingPriority;
use flashweir_classify::Classifier;
use flashweir_config::Config;
use flashweir_core::limits::RECORDED_REQUESTS;
use flashweir_core::{Duration, Hasher64, Rng};
use flashweir_sim::request::{ClassModel, Work};
use flashweir_workload::documents::{Popularity, Sizes};
use flashweir_workload::recording::{Document, Recording};
use flashweir_workload::{ArrivalProcess, Schedule, Share, Stream};
use http::Request;
use std::net::{IpAddr, Ipv4Addr};

/// Number of documents reported individually; the others are summed.
const NAMED_DOCUMENTS_MAX: usize = 40;
/// Assumed client timeout; access logs do not record it.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// A copy comes at most so much later than its original: logs have whole seconds.
const SPREAD_S: f64 = 1.0;

/// Arrivals, class by class.
#[derive(Debug)]
pub(super) struct Crowd {
    pub(super) classes: Vec<ClassModel>,
    pub(super) length: Duration,
    /// Arrival times of each class's clients, and the documents they request.
    comings: Vec<Vec<(Duration, u32)>>,
}

impl Crowd {
    /// The requests of a log, `scale` times as many, in the classes that the configuration's first service
    /// has for them.
    ///
    /// # Errors
    /// More of them than are kept, or none.
    pub(super) fn new(
        recording: &Recording,
        config: &Config,
        scale: f64,
        work: Duration,
    ) -> anyhow::Result<Self> {
        let expected = recording.moments().len() as f64 * scale;
        ensure!(
            expected <= RECORDED_REQUESTS as f64,
            "--scale: {expected:.0} requests are more than {RECORDED_REQUESTS}"
        );
        let counts = recording.popularity_counts();
        let mut by_count: Vec<u32> = (0..).take(counts.len()).collect();
        by_count.sort_by_key(|document| std::cmp::Reverse(counts[*document as usize]));
        let named = &by_count[..by_count.len().min(NAMED_DOCUMENTS_MAX)];
        let taken = taken(recording, config, counts.len());
        let mut others: Vec<Taken> = taken.clone();
        others.sort_unstable_by_key(|taken| taken.policy_class);
        others.dedup_by_key(|taken| taken.policy_class);
        // The class of each document; those that are summed come last, policy class by policy class.
        let together = |taken: &Taken| {
            others.iter().position(|other| other.policy_class == taken.policy_class).unwrap_or(0)
        };
        let mut class_of: Vec<usize> = taken.iter().map(|taken| named.len() + together(taken)).collect();
        named.iter().enumerate().for_each(|(class, document)| class_of[*document as usize] = class);
        let mut comings = vec![Vec::new(); named.len() + others.len()];
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
        let only = others.len() == 1;
        let of_others = others.iter().map(|taken| {
            let class = &config.services[0].classes[usize::from(taken.policy_class)];
            let name = if only { OTHERS.to_owned() } else { format!("{OTHERS} of {}", class.name) };
            (name, *taken)
        });
        let classes_by_document = named
            .iter()
            .map(|document| (name(recording, *document), taken[*document as usize]))
            .chain(of_others);
        let classes = classes_by_document.zip(&comings).map(|((name, taken), coming)| {
            let documents: Vec<u32> = coming.iter().map(|(_, document)| *document).collect();
            ClassModel {
                sizes: Sizes::Constant(mean_bytes(recording, &documents)),
                popularity: Popularity::Recorded(documents.into()),
                timeout: TIMEOUT,
                policy_class: taken.policy_class,
                ceiling_priority: taken.ceiling_priority,
                ..ClassModel::new(name, work)
            }
        });
        let crowd = Self { classes: classes.collect(), length: recording.length(), comings };
        ensure!(
            crowd.comings.iter().any(|coming| !coming.is_empty()),
            "--scale {scale}: no requests are left to simulate"
        );
        Ok(crowd)
    }

    /// Schedule of all arrivals.
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

/// The mean size of what is asked for, in whole bytes; zero if nothing is. A class has one size, and of a
/// class of one document this is that document's.
fn mean_bytes(recording: &Recording, asked_for: &[u32]) -> u64 {
    let bytes =
        |document: &u32| recording.document(*document).map_or(0, |document| u128::from(document.bytes));
    let sum: u128 = asked_for.iter().map(bytes).sum();
    // A mean is no larger than the largest.
    u64::try_from(sum / asked_for.len().max(1) as u128).unwrap_or(u64::MAX)
}

/// Class, and priority under a ceiling, that the first service gives a document.
#[derive(Clone, Copy, Debug)]
struct Taken {
    policy_class: u8,
    ceiling_priority: CeilingPriority,
}

/// Classification of each document by the first service, made by the gateway's own classifier. A log has
/// neither hosts nor fields nor clients' networks or nodes in front, so only method and path decide; what is
/// no request target takes the last class.
fn taken(recording: &Recording, config: &Config, documents: usize) -> Vec<Taken> {
    // Any key will do: hashes are not shown. A service alone has every host.
    let mut alone = config.clone();
    alone.services.truncate(1);
    alone.services[0].hosts.clear();
    let classifier = Classifier::new(Hasher64::new(0, 0), Hasher64::new(0, 0), &alone);
    let last = Taken {
        policy_class: alone.services[0].classes.len() as u8 - 1,
        ceiling_priority: CeilingPriority::LAST,
    };
    let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let taken = |document: u32| {
        let Document { method, path, .. } = recording.document(document)?;
        let request = Request::builder().method(method).uri(path).body(()).ok()?;
        let found = classifier.classify(&request.into_parts().0, nowhere, None)?;
        Some(Taken { policy_class: found.class, ceiling_priority: found.ceiling_priority })
    };
    (0..).take(documents).map(|document| taken(document).unwrap_or(last)).collect()
}

/// Name of the summed documents.
const OTHERS: &str = "all others";

fn name(recording: &Recording, document: u32) -> String {
    recording
        .document(document)
        .map(|document| format!("{} {}", document.method, document.path))
        .unwrap_or_default()
}

const DAY: Duration = Duration::from_secs(24 * 3_600);

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_workload::recording::Options;

    /// Goal: summed documents have the mean size of the requested ones, not that of the first. Method: a log
    /// of forty documents asked for twice, and of a small and a large one asked for once.
    #[test]
    fn all_others_have_the_mean_size() {
        let line = |path: &str, bytes: u32| {
            format!("192.0.2.1 - - [17/May/2015:10:00:00 +0000] \"GET {path} HTTP/1.1\" 200 {bytes}\n")
        };
        let twice =
            (0..2 * NAMED_DOCUMENTS_MAX).map(|place| line(&format!("/{}", place % NAMED_DOCUMENTS_MAX), 500));
        let log: String = twice.chain([line("/small", 100), line("/large", 1_100)]).collect();
        let (_, recording) = Recording::read_detecting(log.as_bytes(), &Options::default()).unwrap();
        let config = Config::from_toml("upstream.urls = ['http://127.0.0.1:9']", "test.toml").unwrap();
        let crowd = Crowd::new(&recording, &config, 1.0, Duration::from_millis(1)).unwrap();
        let sizes: Vec<_> = crowd.classes.iter().map(|class| class.sizes).collect();
        assert_eq!(sizes.len(), NAMED_DOCUMENTS_MAX + 1);
        assert!(sizes[..NAMED_DOCUMENTS_MAX].iter().all(|size| *size == Sizes::Constant(500)), "{sizes:?}");
        assert_eq!(crowd.classes[NAMED_DOCUMENTS_MAX].name, "all others");
        assert_eq!(sizes[NAMED_DOCUMENTS_MAX], Sizes::Constant(600));
    }
}
