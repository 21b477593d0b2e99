use super::*;
use crate::ConnectionCounts;
use crate::counts::{ErrorKind, TryOutcome};
use crate::crowd_window::CrowdWindow;
use crate::ledger::{Cell, End, Ledger};
use flashweir_core::{Reason, Rng};
use std::net::SocketAddr;
use std::time::Duration;

const CLASSES: [&str; 2] = ["browsers", "buyers"];
const CROWD: CrowdWindow = CrowdWindow { from_s: 6.0, to_s: 9.0 };

/// Tries as a run would write them down, drawn from a seed; each in the books of shard `n % shards`.
fn books(tries: u64, seconds: u64, shards: usize) -> Vec<BTreeMap<String, Book>> {
    let mut rng = Rng::new(7);
    let mut ledgers: Vec<_> = (0..shards).map(|_| Ledger::new(CLASSES.len())).collect();
    for n in 0..tries {
        let ledger = &mut ledgers[n as usize % shards];
        let mut micros = |below: u64| Duration::from_micros(rng.below(below));
        let cell = Cell { second: n * seconds / tries, class: u16::from(n % 5 == 0) };
        let (latency, lag) = (micros(3_000_000), micros(900));
        ledger.offer(cell, n % 7 != 0, lag);
        ledger.sent(cell);
        let outcome = match n % 11 {
            0 => TryOutcome::Refused { status: 503, reason: Some(Reason::FlashCrowd) },
            1 => TryOutcome::Refused { status: 429, reason: None },
            2 => TryOutcome::TimedOut,
            3 => TryOutcome::Abandoned,
            4 => TryOutcome::Failed(ErrorKind::Closed),
            _ => TryOutcome::Completed { good: latency < Duration::from_millis(2_900) },
        };
        let (ttfb, served_after) = (Some(latency / 2), latency * 2);
        ledger.settle(cell, &End { outcome, latency, ttfb, served_after, body_bytes: n });
    }
    ledgers.iter_mut().map(by_name).collect()
}

fn by_name(ledger: &mut Ledger) -> BTreeMap<String, Book> {
    let mut books: Vec<_> = CLASSES.iter().map(|_| Book::new()).collect();
    for (cell, change) in ledger.take_changes() {
        books[usize::from(cell.class)].series.add(cell.second, &change);
    }
    for (book, totals) in books.iter_mut().zip(ledger.classes()) {
        book.totals.add(totals);
    }
    CLASSES.into_iter().map(str::to_owned).zip(books).collect()
}

fn run(shard: &str) -> RunFacts {
    RunFacts {
        format: FORMAT,
        url: "http://127.0.0.1:8080/".to_owned(),
        seed: 7,
        length_s: 20.0,
        duration_s: 20.5,
        shards: vec![shard.to_owned()],
        interrupted: false,
        ..RunFacts::default()
    }
}

fn results(tries: u64, seconds: u64, shards: usize) -> Vec<(String, LoadResult)> {
    let result = |(books, n): (_, u16)| {
        let mut result = conclude(run(&format!("{n}/{shards}")), books, Some(CROWD));
        let count = u64::from(n);
        result.connections = ConnectionCounts {
            opened: count,
            reused: 10 * count,
            failed: 100 * count,
            given_up: 1_000 * count,
            syn_retransmissions: 10_000 * count,
        };
        result.run.addresses.insert(SocketAddr::from(([127, 0, 0, 1], 80 + n)));
        (format!("{n}.json"), result)
    };
    books(tries, seconds, shards).into_iter().zip(1..).map(result).collect()
}

/// Removes the facts by which a run and the sum of its shards differ by nature.
fn without_run(mut result: LoadResult) -> LoadResult {
    result.run = run("1/1");
    result.connections = ConnectionCounts::default();
    result
}

/// Counts, series, percentiles, histograms and the recovery of shards add up to those of the whole, to the
/// last bucket, also when the result was written to a file in between.
#[test]
fn shards_add_up_to_the_whole() {
    let whole = results(20_000, 20, 1).remove(0).1;
    let shards: Vec<_> = results(20_000, 20, 3)
        .into_iter()
        .map(|(name, result)| (name, serde_json::from_str(&serde_json::to_string(&result).unwrap()).unwrap()))
        .collect();
    let merged = merge(&shards).unwrap();
    assert_eq!((merged.run.shards.len(), merged.run.addresses.len()), (3, 3));
    let connections = serde_json::to_value(merged.connections).unwrap();
    let counts: Vec<_> =
        connections.as_object().unwrap().values().filter_map(|count| count.as_u64()).collect();
    assert_eq!(counts.iter().sum::<u64>(), 66_666, "{connections}");
    assert_eq!(merged.totals.offered, 20_000);
    assert!(merged.recovery.is_some() && merged.recovery == whole.recovery);
    assert_eq!(without_run(merged), without_run(whole));
}

#[test]
fn the_order_of_shards_and_of_sums_is_free() {
    let [one, two, three] = results(5_000, 20, 3).try_into().unwrap();
    let sum = merge(&[one.clone(), two.clone(), three.clone()]).unwrap();
    let turned = merge(&[three.clone(), one.clone(), two.clone()]).unwrap();
    assert_eq!(without_run(sum.clone()), without_run(turned));
    let of_two = ("sum.json".to_owned(), merge(&[three, one]).unwrap());
    assert_eq!(without_run(sum), without_run(merge(&[two, of_two]).unwrap()));
}

/// A shard without arrivals in the last minutes has narrower bins than one that went on.
#[test]
fn series_of_unlike_widths_add() {
    let long = results(3_000, 10_000, 1).remove(0).1;
    let short = results(500, 20, 1).remove(0).1;
    assert_eq!((long.series_bin_s, short.series_bin_s), (2, 1));
    let named = |shard: &str, mut result: LoadResult| {
        result.run.shards = vec![shard.to_owned()];
        (shard.to_owned(), result)
    };
    let merged = merge(&[named("1/2", short), named("2/2", long)]).unwrap();
    assert_eq!((merged.series_bin_s, merged.totals.offered), (2, 3_500));
    let series = &merged.totals.series;
    assert_eq!(series.iter().map(|second| second.offered).sum::<u64>(), 3_500);
    assert!(series.iter().zip(0..).all(|(second, place)| second.second == 2 * place));
}

/// A doubtful shard makes the sum doubtful.
#[test]
fn doubts_are_kept() {
    let mut shards = results(1_000, 20, 2);
    shards[1].1.saturated = true;
    shards[0].1.run.interrupted = true;
    shards[1].1.run.duration_s = 33.0;
    let merged = merge(&shards).unwrap();
    assert!(merged.saturated && merged.run.interrupted);
    assert_eq!(merged.run.duration_s, 33.0);
}

#[test]
fn what_cannot_be_added_is_named() {
    let check = |change: fn(&mut LoadResult), wanted: &str| {
        let mut shards = results(1_000, 20, 2);
        change(&mut shards[1].1);
        let said = merge(&shards).unwrap_err().to_string();
        assert!(said.contains(wanted), "{said} lacks {wanted}");
    };
    check(|result| result.run.format = 2, "2.json: format 2 of another version; this one reads format 1");
    check(
        |result| result.run.seed = 8,
        "1.json and 2.json are of different runs: the seed is 7 in one and 8",
    );
    check(|result| result.run.url.push('x'), "the URL is http://127.0.0.1:8080/ in one");
    check(|result| result.run.length_s = 21.0, "the schedule's length is 20 in one and 21");
    check(|result| result.run.shards = vec!["1/2".to_owned()], "1.json and 2.json are both of shard 1/2");
    check(
        |result| result.run.shards = vec!["2/3".to_owned()],
        "1.json is of shard 1/2 and 2.json of shard 2/3",
    );
    check(|result| result.series_bin_s = 3, "2.json, class browsers: series_bin_s is 3: expected 1, 2, 4, …");
    check(|result| result.series_bin_s = 1 << 63, "series_bin_s is 9223372036854775808");
    let buyers = |result: &mut LoadResult, change: fn(&mut crate::Tally)| {
        change(result.classes.get_mut("buyers").unwrap());
    };
    let broken = [
        (
            (|tally| tally.offered += 1) as fn(&mut crate::Tally),
            "2.json, class buyers: the seconds of the series do not add up to the totals",
        ),
        (
            |tally| tally.series[3].refused_429 = tally.series[3].refused + 1,
            "series, second 3: a part is more than",
        ),
        (|tally| tally.series[3].timed_out += u64::MAX / 2, "series, second 3: a part is more than"),
        (|tally| tally.series.resize_with(7_201, Default::default), "more than 7200 entries"),
        (|tally| tally.histograms.lag_us.truncate(3), "one value for each try"),
        (|tally| tally.series[3].second = 9, "series, second 9: expected second 3"),
        (
            |tally| tally.series[3].errors_by_kind.extend([("gremlins".to_owned(), 1)]),
            "\"gremlins\" is no kind of error",
        ),
        (|tally| tally.series[3].latency_buckets.push((9_999, 1)), "series, second 3: "),
    ];
    for (change, wanted) in broken {
        let mut shards = results(1_000, 20, 2);
        buyers(&mut shards[1].1, change);
        let said = merge(&shards).unwrap_err().to_string();
        assert!(said.contains(wanted), "{said} lacks {wanted}");
    }
    assert_eq!(merge(&[]).unwrap_err().to_string(), "no results to merge");
}
