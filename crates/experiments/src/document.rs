//! The document of all findings: one row and one section each.

use crate::elsewhere::ELSEWHERE;
use crate::table_text::{cells, figures_named};
use crate::{EXPERIMENTS, Experiment, Finding};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Findings as one Markdown document, in the order of [`EXPERIMENTS`], with charts in the directory `figures` beside it.
#[must_use]
pub fn document(findings: &[(&Experiment, Finding)], figures: &str) -> String {
    revised("", findings, figures)
}

/// The document with these findings in place of what it had of them; what it has of other experiments stays.
#[must_use]
pub fn revised(before: &str, findings: &[(&Experiment, Finding)], figures: &str) -> String {
    let mut parts = parts_of(before);
    for (experiment, finding) in findings {
        let part =
            Part { verdict: finding.verdict.to_string(), section: section(experiment, finding, figures) };
        parts.insert(experiment.id, part);
    }
    let mut out = String::from(HEAD);
    // Writing to a string cannot fail.
    let told = || EXPERIMENTS.iter().filter_map(|experiment| Some((experiment, parts.get(experiment.id)?)));
    for (Experiment { id, title, .. }, part) in told() {
        let _ = writeln!(out, "| [{id}](#{}) | {title} | {} |", anchor(id), part.verdict);
    }
    for elsewhere in ELSEWHERE {
        let _ =
            writeln!(out, "| {} | {} | measured: `{}` |", elsewhere.id, elsewhere.title, elsewhere.command);
    }
    told().for_each(|(_, part)| out.push_str(&part.section));
    out
}

const HEAD: &str = "# What of the papers comes out of the simulator\n\nWritten by `flashweir reproduce`, each section by a run \
    of its own; every number is of that run. *matches*: every judged value is within the tolerance that its row names. \
    *same shape*: the conditions on the shape of the result hold, but values are missed, or the model was chosen by \
    some of them, so none is claimed. *differs*: a condition does not hold. Of several seeds, means are shown, and the \
    least and most in brackets.\n\n| ID | shows | verdict |\n|---|---|---|\n";

/// What the document has of one experiment.
struct Part {
    verdict: String,
    /// From its heading on, with the empty line before.
    section: String,
}

/// The sections of a document of experiments that there are.
fn parts_of(document: &str) -> BTreeMap<&'static str, Part> {
    let sections = document.split("\n## ").skip(1);
    let parts = sections.filter_map(|text| {
        let known = EXPERIMENTS.iter().find(|experiment| text.lines().next() == Some(experiment.id))?;
        let row = format!("| [{}](#{}) | ", known.id, anchor(known.id));
        let row = document.lines().find_map(|line| line.strip_prefix(&row))?;
        let verdict = row.trim_end_matches(" |").rsplit(" | ").next()?.to_owned();
        Some((known.id, Part { verdict, section: format!("\n## {text}") }))
    });
    let mut parts: BTreeMap<_, _> = parts.collect();
    // The newline before a heading went with the split.
    parts.values_mut().filter(|part| !part.section.ends_with('\n')).for_each(|part| part.section.push('\n'));
    parts
}

fn section(experiment: &Experiment, finding: &Finding, figures: &str) -> String {
    let mut out = String::new();
    let Experiment { id, title, paper, .. } = experiment;
    let _ = writeln!(out, "\n## {id}\n\n{title}. Paper: {paper}.\n");
    let [picture, numbers] = figures_named(id);
    let _ = writeln!(out, "![{title}]({figures}/{picture}) ([numbers]({figures}/{numbers}))\n");
    for (index, row) in cells(finding).iter().enumerate() {
        let _ = writeln!(out, "| {} |", row.join(" | "));
        if index == 0 {
            let _ = writeln!(out, "|---|{}", "---:|".repeat(row.len() - 1));
        }
    }
    out.push('\n');
    for shape in &finding.shapes {
        let _ = writeln!(out, "- {}: {}", if shape.holds { "yes" } else { "**no**" }, shape.what);
    }
    for note in &finding.notes {
        let _ = writeln!(out, "- Note: {note}");
    }
    let _ = writeln!(out, "- Verdict: **{}**", finding.verdict);
    out
}

fn anchor(id: &str) -> String {
    id.to_ascii_lowercase().replace('.', "")
}
