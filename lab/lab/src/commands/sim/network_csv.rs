//! Links, transfers, datagrams and the router bin by bin, for other tools.

use super::csv::{put, table, text};
use super::judged::Judged;
use flashweir_sim::request::PacketOutcome;
use std::path::Path;

/// Writes `links.csv`, and `transfers.csv`, `datagrams.csv` and `router.csv` where there are any; nothing at
/// the level of requests.
///
/// # Errors
/// A file that cannot be written, by its name.
pub(super) fn write(judged: &Judged<'_>, directory: &Path) -> anyhow::Result<()> {
    let tables: [(&str, &[&str], Rows); 4] = [
        (
            "links.csv",
            &["link", "direction", "offered", "dropped", "marked", "delivered_bytes", "utilization"],
            links,
        ),
        ("transfers.csv", &["transfer", "received_bytes"], transfers),
        ("datagrams.csv", &["source", "sent", "delivered"], datagrams),
        ("router.csv", &["syns_offered", "syns_admitted", "syns_shed"], router),
    ];
    for (name, head, rows) in tables {
        if let Some(text) = written(judged, head, rows)? {
            put(&directory.join(name), &text)?;
        }
    }
    Ok(())
}

/// The rows of one run: the bin's number, and the cells.
type Rows = fn(&Judged<'_>, &PacketOutcome) -> Vec<(usize, Vec<String>)>;

/// The table of all runs; none without a row.
fn written(judged: &Judged<'_>, head: &[&str], rows: Rows) -> anyhow::Result<Option<String>> {
    let mut table = table();
    table.write_record(["seed", "from_s"].iter().chain(head))?;
    let mut is_empty = true;
    for (seed, outcome) in judged.scenario.seeds().into_iter().zip(&judged.outcomes) {
        let bin_s = outcome.bin.as_secs_f64();
        for (bin, cells) in outcome.packets.iter().flat_map(|packets| rows(judged, packets)) {
            is_empty = false;
            table.write_record(
                [seed.to_string(), (bin as f64 * bin_s).to_string()].into_iter().chain(cells),
            )?;
        }
    }
    if is_empty { Ok(None) } else { text(table).map(Some) }
}

fn links(judged: &Judged<'_>, packets: &PacketOutcome) -> Vec<(usize, Vec<String>)> {
    let bin_s = judged.bin_s();
    let mut rows = Vec::new();
    for (link, wire) in judged.scenario.links().iter().zip(&packets.wires) {
        let ways = [("there", &wire.there), ("back", &wire.back)].into_iter().zip(link.rates_bits_per_s);
        for ((way, bins), rate) in ways {
            rows.extend(bins.iter().enumerate().map(|(place, bin)| {
                let utilization = bin.delivered_bytes as f64 * 8.0 / (rate as f64 * bin_s);
                let numbers = [bin.offered, bin.dropped, bin.marked, bin.delivered_bytes];
                let cells = [link.name.clone(), way.to_owned()]
                    .into_iter()
                    .chain(numbers.map(|number| number.to_string()));
                (place, cells.chain([utilization.to_string()]).collect())
            }));
        }
    }
    rows
}

fn transfers(_: &Judged<'_>, packets: &PacketOutcome) -> Vec<(usize, Vec<String>)> {
    let rows = packets.transfers.iter().flat_map(|transfer| {
        let bins = transfer.received_bytes.iter().enumerate();
        bins.map(|(place, bytes)| (place, vec![transfer.name.clone(), bytes.to_string()]))
    });
    rows.collect()
}

fn datagrams(_: &Judged<'_>, packets: &PacketOutcome) -> Vec<(usize, Vec<String>)> {
    let rows = packets.datagrams.iter().flat_map(|source| {
        let bins = source.bins.iter().enumerate();
        bins.map(|(place, bin)| {
            (place, vec![source.name.clone(), bin.sent.to_string(), bin.delivered.to_string()])
        })
    });
    rows.collect()
}

fn router(_: &Judged<'_>, packets: &PacketOutcome) -> Vec<(usize, Vec<String>)> {
    let bins = packets.router.iter().flat_map(|router| router.bins.iter().enumerate());
    bins.map(|(place, bin)| {
        (place, [bin.offered, bin.admitted, bin.shed].map(|number| number.to_string()).to_vec())
    })
    .collect()
}
