//! The document of all findings: a half for the simulator and a half for the testbed, with one row and one
//! section for each finding.

use crate::experiments::elsewhere::ELSEWHERE;
use crate::experiments::table_text::{cells, figures_named, testbed_figures_named};
use crate::experiments::testbed::{TRIALS, Trial};
use crate::experiments::{EXPERIMENTS, Experiment, Finding, Subject, Summary};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Findings as one Markdown document, in the order of [`EXPERIMENTS`], with charts in the directory `figures`
/// beside it.
#[must_use]
pub fn document(findings: &[(&Experiment, Finding)], figures: &str) -> String {
    revised("", findings, figures)
}

/// The document with these findings in place of what it had of them; what it has of other experiments, and of
/// the testbed, stays.
#[must_use]
pub fn revised(before: &str, findings: &[(&Experiment, Finding)], figures: &str) -> String {
    let [simulated, on_testbed] = halves(before);
    let findings = findings.iter().map(|(experiment, finding)| (Subject::from(*experiment), finding));
    simulator().revised(simulated, findings, figures) + &testbed().unchanged(on_testbed, figures)
}

/// The document with these findings of the testbed in place of what it had of them; all else stays.
#[must_use]
pub fn revised_testbed(before: &str, findings: &[(&Trial, Finding)], figures: &str) -> String {
    let [simulated, on_testbed] = halves(before);
    let findings = findings.iter().map(|(trial, finding)| (trial.subject, finding));
    simulator().unchanged(simulated, figures) + &testbed().revised(on_testbed, findings, figures)
}

/// State that the two halves share.
struct Half {
    head: &'static str,
    /// Behind an id in a heading.
    behind_id: &'static str,
    subjects: Vec<Subject>,
    figures_named: fn(&str) -> [String; 2],
    /// True if it names what is measured elsewhere.
    names_elsewhere: bool,
}

fn simulator() -> Half {
    Half {
        head: HEAD,
        behind_id: "",
        subjects: EXPERIMENTS.iter().map(Subject::from).collect(),
        figures_named,
        names_elsewhere: true,
    }
}

fn testbed() -> Half {
    Half {
        head: TESTBED_HEAD,
        behind_id: " on the testbed",
        subjects: TRIALS.iter().map(|trial| trial.subject).collect(),
        figures_named: testbed_figures_named,
        names_elsewhere: false,
    }
}

const HEAD: &str = "# What of the papers comes out of the simulator\n\nWritten by `flashweir reproduce`, each section by a run \
    of its own; every number is of that run. Every seed is judged, not their mean: a condition holds, and a value is \
    met, only if it is so with the worst seed. *matches*: every judged value is within the tolerance that its row names. \
    *same shape*: the conditions on the shape of the result hold, but values are missed, or the model was chosen by \
    some of them, so none is claimed. *differs*: a condition does not hold. Conditions are the directions that the paper \
    states, and the sizes of its effects, to a quarter of each unless the condition says another tolerance; in the summary \
    stand the rows of the table that are judged, and how many are met. In tables, means over the seeds are shown, and \
    the least and most in brackets; behind a condition stand what it requires, the number of the worst seed, and the \
    least and most. A section whose conditions have no numbers is of an earlier run, which was judged by the mean.\n";

const TESTBED_HEAD: &str = "\n# What of the papers comes out on a testbed of real Linux\n\nWritten by `flashweir reproduce \
    --testbed`, each section by runs of its own. Network namespaces of one machine stand for clients, routers and \
    servers; TCP, nginx, the crowd and the router are real. Verdicts are as above. The same seed is the same crowd, but \
    no two runs are alike.\n";

const TABLE_HEAD: &str = "| ID | shows | judged values met | verdict |\n|---|---|---:|---|\n";
const TESTBED_BEGINS: &str = "\n# What of the papers comes out on a testbed";

/// The simulator's and the testbed's.
fn halves(document: &str) -> [&str; 2] {
    let at = document.find(TESTBED_BEGINS).unwrap_or(document.len());
    let (simulated, on_testbed) = document.split_at(at);
    [simulated, on_testbed]
}

/// The document's part about one subject.
struct Part {
    verdict: String,
    /// From its heading on, with the empty line before.
    section: String,
}

impl Part {
    /// Of the judged rows of its table; a dash where none is.
    fn values_met(&self) -> String {
        let judged = |how: &str| {
            let end = format!(": {how} |");
            self.section.lines().filter(|line| line.starts_with("| ") && line.ends_with(&end)).count()
        };
        match [judged("met"), judged("missed")] {
            [0, 0] => "–".to_owned(),
            [met, missed] => format!("{met} of {}", met + missed),
        }
    }
}

impl Half {
    fn revised<'a>(
        &self,
        before: &str,
        findings: impl Iterator<Item = (Subject, &'a Finding)>,
        figures: &str,
    ) -> String {
        let mut parts = self.parts_of(before);
        for (subject, finding) in findings {
            let section = self.section(subject, finding, figures);
            parts.insert(subject.id, Part { verdict: finding.verdict.to_string(), section });
        }
        let mut out = String::from(self.head);
        let known_parts =
            || self.subjects.iter().filter_map(|subject| Some((subject, parts.get(subject.id)?)));
        let summary = Summary::of_texts(known_parts().map(|(_, part)| part.verdict.as_str()));
        // Writing to a string cannot fail, here and below.
        let _ = write!(out, "\n**{summary}.**\n\n{TABLE_HEAD}");
        for (Subject { id, title, .. }, part) in known_parts() {
            let (anchor, verdict) = (self.anchor(id), &part.verdict);
            let _ = writeln!(out, "| [{id}](#{anchor}) | {title} | {} | {verdict} |", part.values_met());
        }
        for elsewhere in ELSEWHERE.iter().filter(|_| self.names_elsewhere) {
            let (id, title, command) = (elsewhere.id, elsewhere.title, elsewhere.command);
            let _ = writeln!(out, "| {id} | {title} | – | measured: `{command}` |");
        }
        known_parts().for_each(|(_, part)| out.push_str(&part.section));
        out
    }

    /// The half with its own sections and a new summary; nothing where there is no half.
    fn unchanged(&self, before: &str, figures: &str) -> String {
        if before.is_empty() {
            return String::new();
        }
        self.revised(before, std::iter::empty(), figures)
    }

    /// The sections that there are of subjects that there are.
    fn parts_of(&self, half: &str) -> BTreeMap<&'static str, Part> {
        let sections = half.split("\n## ").skip(1);
        let parts = sections.filter_map(|text| {
            let id = text.lines().next()?.strip_suffix(self.behind_id)?;
            let known = self.subjects.iter().find(|subject| subject.id == id)?;
            let row = format!("| [{}](#{}) | ", known.id, self.anchor(known.id));
            let row = half.lines().find_map(|line| line.strip_prefix(&row))?;
            let verdict = row.trim_end_matches(" |").rsplit(" | ").next()?.to_owned();
            Some((known.id, Part { verdict, section: format!("\n## {text}") }))
        });
        let mut parts: BTreeMap<_, _> = parts.collect();
        // The newline before a heading went with the split.
        parts
            .values_mut()
            .filter(|part| !part.section.ends_with('\n'))
            .for_each(|part| part.section.push('\n'));
        parts
    }

    fn section(&self, Subject { id, title, paper }: Subject, finding: &Finding, figures: &str) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "\n## {id}{}\n\n{title}. Paper: {paper}.\n", self.behind_id);
        let [picture, numbers] = (self.figures_named)(id);
        let _ = writeln!(out, "![{title}]({figures}/{picture}) ([numbers]({figures}/{numbers}))\n");
        for (index, row) in cells(finding).iter().enumerate() {
            let _ = writeln!(out, "| {} |", row.join(" | "));
            if index == 0 {
                let _ = writeln!(out, "|---|{}", "---:|".repeat(row.len() - 1));
            }
        }
        out.push('\n');
        for shape in &finding.shapes {
            let holds = if shape.holds() { "yes" } else { "**no**" };
            let _ = writeln!(out, "- {holds}: {} ({})", shape.what, shape.numbers());
        }
        for note in &finding.notes {
            let _ = writeln!(out, "- Note: {note}");
        }
        let _ = writeln!(out, "- Verdict: **{}**", finding.verdict);
        out
    }

    fn anchor(&self, id: &str) -> String {
        format!("{id}{}", self.behind_id).to_ascii_lowercase().replace('.', "").replace(' ', "-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::testbed::{Results, Scope, find_trial};

    /// Goal: the summary counts the rows of a section that are judged, and no others.
    #[test]
    fn met_rows_are_counted_from_the_section() {
        let values_met =
            |section: &str| Part { verdict: "same shape".into(), section: section.into() }.values_met();
        let row = "\n## X\n\n| a | 1 | 2 | none ±10 %: met |\n| b | 1 | 3 | none ±1: missed |\n| c | – | 3 | shown |\n- no: d: met |\n";
        assert_eq!(values_met(row), "1 of 2");
        assert_eq!(values_met("\n## X\n\n| c | – | 3 | shown |\n"), "–");
    }

    /// Goal: neither half disturbs the other. Method: findings of runs that were never made.
    #[test]
    fn a_finding_of_the_testbed_stays_beside_one_of_the_simulator() {
        let finding = |id| {
            let trial = find_trial(id).expect("it exists");
            (trial, (trial.judge)(&Scope::default(), &Results::default()).expect("a chart of nothing"))
        };
        let experiment = crate::experiments::find("NEWS-F22").expect("it exists");
        let simulated = document(&[(experiment, finding("NEWS-F22").1)], "figures");
        let both = revised_testbed(&simulated, &[finding("NEWS-T3")], "figures");
        let more = revised_testbed(&both, &[finding("NEWS-F22")], "figures");
        assert!(both.starts_with(&simulated) && more.starts_with(&simulated));
        assert!(more.contains("| [NEWS-F22](#news-f22-on-the-testbed) |"), "{more}");
        assert!(
            more.contains("(figures/news-f22-testbed.svg)") && more.contains("\n## NEWS-T3 on the testbed\n")
        );
        assert_eq!(revised(&more, &[], "figures"), more);
        assert!(more.contains("\n**1 figure: matches 0, same shape 0, differs 1.**\n\n| ID |"), "{more}");
        assert!(more.contains("\n**2 figures: matches 0, same shape 0, differs 2.**\n\n| ID |"), "{more}");
        assert_eq!(revised_testbed(&more, &[], "figures"), more);
    }
}
