//! `docs/reproduction-real.md`.

use super::{Facts, Finding};
use std::fmt::Write as _;

impl Finding {
    /// The page, in Markdown; `figures` is the directory of the two figures, as seen from it.
    #[must_use]
    pub fn page(&self, figures: &str) -> String {
        let Facts { crowd, servers, capacity_after_rps, machine } = &self.facts;
        let each: Vec<String> =
            servers.iter().map(|(name, rps)| format!("{name} ({rps:.0}/s alone)")).collect();
        let mut text = format!(
            "# What of the papers comes out on real servers\n\nWritten by `make cataclysm`.\n\n## CAT-F3\n\n\
             Who is let in when more and more come. Paper: Figure 3 and §5: three servers; bronze is refused from 130 s on; \
             from 210 s on, while gold sends 200/s, only gold is served; the 95th percentile of response times stays below 1 s.\n\n\
             ![Requests let in by three real servers]({figures}/cat-f3-real.svg) ([numbers]({figures}/cat-f3-real.csv))\n\n\
             | what | ours |\n|---|---:|\n"
        );
        for value in &self.values {
            // Writing to a string cannot fail, here and below.
            let ours = value.ours.map_or_else(|| "–".to_owned(), |ours| format!("{ours:.2}"));
            let _ = writeln!(text, "| {} | {ours} |", value.what);
        }
        text.push('\n');
        for condition in &self.conditions {
            let _ =
                writeln!(text, "- {}: {}", if condition.holds { "yes" } else { "**no**" }, condition.what);
        }
        let _ = write!(
            text,
            "- Note: machine: {machine}. Three servers share core 0: {}. Together, kept busy and no more, they completed {:.1} \
             requests/s before the run and {capacity_after_rps:.1} after it; goodput is over the mean. Gateway and load generator share the other cores.\n\
             - Note: scaled: {:.0} of the paper's seconds pass in one of ours, and {:.3} of our requests stand for one of the \
             paper's, as our servers do that part of the paper's 193.5/s. Response times, the target of 1 s and the people's \
             patience of 2 s are not scaled.\n\
             - Note: let in are those who were not refused. Rates are in the paper's requests a second. The paper gives its \
             curves only as a figure: the rates are those of the simulator's CAT-F3.\n\
             - Note: the gateway runs with its defaults but for its upstreams and three classes of revenue 9, 3 and 1; the \
             paper's delays of 0, 50 and 100 ms are not set.\n",
            each.join(", "),
            crowd.capacity_rps,
            crowd.speed_up,
            crowd.scale()
        );
        if self.saturated {
            text.push_str("- Note: **the load generator could not keep up; this run says little.**\n");
        }
        let failed: Vec<&str> =
            self.conditions.iter().filter(|it| !it.holds).map(|it| it.what.as_str()).collect();
        let verdict = if failed.is_empty() {
            "same shape".to_owned()
        } else {
            format!("differs: not so: {}", failed.join("; "))
        };
        let _ = writeln!(text, "- Verdict: **{verdict}**");
        text
    }
}

#[cfg(test)]
mod tests {
    use crate::trials::cataclysm::Finding;
    use crate::trials::cataclysm::finding::tests::as_in_the_paper;

    #[test]
    fn a_page_of_a_run_as_in_the_paper() {
        let (load, facts) = as_in_the_paper();
        insta::assert_snapshot!(Finding::of(&load, facts).unwrap().page("figures"));
    }
}
