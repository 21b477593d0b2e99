//! The page of a measurement: totals beside other servers, phases, components, system calls, allocations and
//! copies.

use super::{Counts, PHASES, PerRequest, Scenario};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Rows of the tables of components and functions.
const COMPONENTS: usize = 30;
const FUNCTIONS: usize = 25;
const CALLERS: usize = 15;

/// One scenario: one profile for each server, none where the server cannot do it or is not installed.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Kind of request.
    pub scenario: Scenario,
    /// In the order of [`Results::servers`].
    pub servers: Vec<Option<PerRequest>>,
}

/// All that was measured.
#[derive(Clone, Debug)]
pub struct Results {
    /// Description of the machine.
    pub machine: String,
    /// Names and versions of the servers; the first is Flashweir.
    pub servers: Vec<String>,
    /// Requests by which two runs differ.
    pub requests: u32,
    /// One entry for each scenario.
    pub scenarios: Vec<Measured>,
}

/// The page, in Markdown.
#[must_use]
pub fn page(results: &Results) -> String {
    let mut page = introduction(results);
    page += &totals(results);
    page += &other_counts(results);
    page += &phases(results);
    if let Some(request) = results.first(Scenario::Get512) {
        page += &of_one(request);
    }
    page
}

impl Results {
    fn first(&self, scenario: Scenario) -> Option<&PerRequest> {
        self.scenarios.iter().find(|measured| measured.scenario == scenario)?.servers.first()?.as_ref()
    }
}

fn introduction(results: &Results) -> String {
    let Results { machine, servers, requests, .. } = results;
    format!(
        "# Instructions of a request\n\n\
         Written by `make instructions`, all rows in one run on one machine. Counts by callgrind, which a busy machine hardly changes; they say \
         nothing of the time that the kernel takes, nor of caches.\n\n\
         Machine: {machine}. Servers: {}.\n\n\
         Each count is the difference of two runs over the {requests} requests by which they differ, so that start and end cancel: one client, one \
         request after the other, one worker, connections kept on both sides where the scenario does not say otherwise. Of Flashweir the thread \
         of its worker counts; planners, ten and fifty times a second on another thread, do not. What its worker does for them and to \
         follow acknowledgements, every 10 ms, depends on time: that is the column of timers, and no part of the instructions. \
         Flashweir runs with its defaults: `flashweir run` learns the origin's limit, compares clients and measures answers, \
         which the others do not do.\n\n",
        servers.join(", ")
    )
}

fn totals(results: &Results) -> String {
    let mut text = "## User instructions\n\n| scenario |".to_owned();
    for server in &results.servers {
        let _ = write!(text, " {} |", name(server));
    }
    for server in results.servers.iter().skip(1) {
        let _ = write!(text, " over {} |", name(server));
    }
    let columns = 2 * results.servers.len() - 1;
    let _ = writeln!(text, " timers |\n|---|{}", "---:|".repeat(columns + 1));
    for measured in &results.scenarios {
        let counts = counts_of(measured);
        let own = counts.first().copied().flatten();
        let _ = write!(text, "| {} |", measured.scenario.name());
        for count in &counts {
            let _ = write!(text, " {} |", cell(count.map(|it| it.instructions), 0));
        }
        for count in counts.iter().skip(1) {
            let ratio = own.zip(*count).map(|(own, other)| own.instructions / other.instructions);
            let _ = write!(text, " {} |", cell(ratio, 2));
        }
        let _ = writeln!(text, " {} |", cell(own.map(|it| it.timers), 0));
    }
    text + "\n"
}

/// Counts of one kind, with their digits behind the point.
type Count = (&'static str, fn(&Counts) -> f64, usize);

const COUNTS: [Count; 5] = [
    ("system calls", |counts| counts.system_calls, 2),
    ("clock reads", |counts| counts.clock_reads, 1),
    ("allocations", |counts| counts.allocations, 1),
    ("instructions of the allocator", |counts| counts.allocator, 0),
    ("instructions that copy or fill memory", |counts| counts.copying, 0),
];

fn other_counts(results: &Results) -> String {
    let servers: Vec<&str> = results.servers.iter().map(|server| name(server)).collect();
    let mut text = format!(
        "## System calls, allocations and copies\n\nOf {}. Reads of a clock are no system calls but under valgrind. nginx and HAProxy mostly \
         allocate from pools of their own, which are not counted.\n\n| scenario |",
        servers.join(" / ")
    );
    for (title, ..) in COUNTS {
        let _ = write!(text, " {title} |");
    }
    let _ = writeln!(text, "\n|---|{}", "---:|".repeat(COUNTS.len()));
    for measured in &results.scenarios {
        let counts = counts_of(measured);
        let _ = write!(text, "| {} |", measured.scenario.name());
        for (_, of, digits) in COUNTS {
            let cells: Vec<String> =
                counts.iter().map(|count| cell(count.as_ref().map(of), digits)).collect();
            let _ = write!(text, " {} |", cells.join(" / "));
        }
        text.push('\n');
    }
    text + "\n"
}

fn phases(results: &Results) -> String {
    let mut text = "## Phases and stages\n\nInclusive: what a function calls counts with it, so that rows contain others and do not add up. A row \
        counts the calls that the compiler left as calls; in parentheses, where it is not 1, their number for one request. Empty: no such call, \
        or inlined.\n\n| |"
        .to_owned();
    for measured in &results.scenarios {
        let _ = write!(text, " {} |", measured.scenario.name());
    }
    let _ = writeln!(text, "\n|---|{}", "---:|".repeat(results.scenarios.len()));
    let columns: Vec<_> = results
        .scenarios
        .iter()
        .map(|measured| measured.servers.first().and_then(Option::as_ref).map(PerRequest::phases))
        .collect();
    for (row, phase) in PHASES.iter().enumerate() {
        let cells: Vec<Option<(f64, f64)>> = columns
            .iter()
            .map(|column| {
                let (_, instructions, calls) = column.as_ref()?.get(row).copied()?;
                (calls > 0.05).then_some((instructions, calls))
            })
            .collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(text, "| {} |", phase.name);
        for cell in cells {
            let _ = match cell {
                None => write!(text, " |"),
                Some((instructions, calls)) if (calls - 1.0).abs() < 0.05 => {
                    write!(text, " {} |", number(instructions, 0))
                }
                Some((instructions, calls)) => write!(text, " {} ({calls:.1}) |", number(instructions, 0)),
            };
        }
        text.push('\n');
    }
    text + "\n"
}

fn of_one(request: &PerRequest) -> String {
    let counts = request.counts();
    let all = counts.instructions + counts.timers;
    let mut text = format!(
        "## Components of {}\n\nOwn instructions, timers included: by the file in which code was written, inlined code too, and by the function of \
         which it became part. Most of `std` by file is moves of values.\n\n| component | by file | share | by function | share |\n\
         |---|---:|---:|---:|---:|\n",
        Scenario::Get512.name()
    );
    components(&mut text, request, all);
    text += "\n## Functions\n\nOwn instructions, what is inlined into them included.\n\n| function | instructions | share |\n|---|---:|---:|\n";
    rows(&mut text, &request.functions(), FUNCTIONS, all);
    text += "\n## Who copies\n\nInstructions of `memcpy`, `memmove` and `memset` by caller.\n\n| function | instructions | share |\n|---|---:|---:|\n";
    rows(&mut text, &request.copies(), CALLERS, all);
    let _ = write!(
        text,
        "\n## Who allocates\n\nCalls by caller; {:.1} for one request, and {:.1} that free.\n\n| function | calls |\n|---|---:|\n",
        counts.allocations,
        request.frees()
    );
    for (function, count) in request.allocations().iter().take(CALLERS) {
        let _ = writeln!(text, "| `{function}` | {count:.2} |");
    }
    text += "\n## System calls\n\n| call | for each request |\n|---|---:|\n";
    for (call, count) in request.system_calls().iter().take(CALLERS) {
        let _ = writeln!(text, "| `{call}` | {count:.2} |");
    }
    text
}

fn components(text: &mut String, request: &PerRequest, all: f64) {
    let by_function = request.components_of_functions();
    let by_file: BTreeMap<String, f64> = request.components().into_iter().collect();
    let names: BTreeSet<&String> = by_file.keys().chain(by_function.keys()).collect();
    let of = |counts: &BTreeMap<String, f64>, name: &String| counts.get(name).copied().unwrap_or(0.0);
    let both = names.into_iter().map(|name| (name, of(&by_file, name), of(&by_function, name)));
    let mut sorted: Vec<_> = both.collect();
    sorted.sort_by(|a, b| (b.1 + b.2).total_cmp(&(a.1 + a.2)));
    let cells = |by_file: f64, by_function: f64| {
        let cell = |count: f64| format!("{} | {:.1} % |", number(count, 0), 100.0 * count / all);
        format!("{} {}", cell(by_file), cell(by_function))
    };
    for (name, by_file, by_function) in sorted.iter().take(COMPONENTS) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| `{name}` | {}", cells(*by_file, *by_function));
    }
    let rest = |part: fn(&(&String, f64, f64)) -> f64| sorted.iter().skip(COMPONENTS).map(part).sum::<f64>();
    if sorted.len() > COMPONENTS {
        let _ = writeln!(text, "| the rest | {}", cells(rest(|row| row.1), rest(|row| row.2)));
    }
}

fn rows(text: &mut String, rows: &[(String, f64)], most: usize, all: f64) {
    for (name, instructions) in rows.iter().take(most) {
        let share = 100.0 * instructions / all;
        let _ = writeln!(text, "| `{name}` | {} | {share:.1} % |", number(*instructions, 0));
    }
    let rest: f64 = rows.iter().skip(most).map(|(_, instructions)| instructions).sum();
    if rest > 0.0 {
        let _ = writeln!(text, "| the rest | {} | {:.1} % |", number(rest, 0), 100.0 * rest / all);
    }
}

fn counts_of(measured: &Measured) -> Vec<Option<Counts>> {
    measured.servers.iter().map(|request| request.as_ref().map(PerRequest::counts)).collect()
}

fn name(server: &str) -> &str {
    server.split(' ').next().unwrap_or(server)
}

fn cell(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| number(value, digits))
}

/// A number with commas between thousands.
fn number(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let end = text.find('.').unwrap_or(text.len());
    let mut grouped = String::new();
    for (index, character) in text.chars().enumerate() {
        let is_digit = index < end && character.is_ascii_digit();
        if is_digit && index > 0 && (end - index) % 3 == 0 && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(character);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::super::Profile;
    use super::*;

    fn request(instructions: u32) -> PerRequest {
        let text = format!(
            "events: Ir sysCount\nob=/bin/flashweir\nfl=/src/crates/gateway/src/request/mod.rs\nfn=a::b\n1 {instructions} 3\n\
             cfn=flashweir_gateway::request::received::ReceivedRequest::of\ncalls=2 1\n1 3000\n\
             cfn=malloc\ncalls=4 1\n1 80\n"
        );
        PerRequest::new(&Profile::parse(&text).expect("a profile"), &Profile::default(), 1)
    }

    #[test]
    fn a_page_has_all_servers_and_where_instructions_go() {
        let scenarios = vec![
            Measured {
                scenario: Scenario::Get512,
                servers: vec![Some(request(12_345)), Some(request(10_000)), None],
            },
            Measured { scenario: Scenario::Tls, servers: vec![None, None, None] },
        ];
        let servers = ["Flashweir 1", "nginx 1.22", "HAProxy 2.6"].map(str::to_owned).to_vec();
        let page = page(&Results { machine: "a machine".to_owned(), servers, requests: 500, scenarios });
        let rows = [
            "| scenario | Flashweir | nginx | HAProxy | over nginx | over HAProxy | timers |",
            "| GET 512 B | 12,345 | 10,000 | – | 1.23 | – | 0 |",
            "| GET 512 B | 3.00 / 3.00 / – | 0.0 / 0.0 / – | 4.0 / 4.0 / – | 0 / 0 / – | 0 / 0 / – |",
            "| GET 512 B, TLS | – | – | – | – | – | – |",
            "| received: head, service, class, client | 3,000 (2.0) | |",
            "| `flashweir-gateway/request` | 12,345 | 100.0 % | 0 | 0.0 % |",
            "| `a::b` | 4.00 |",
        ];
        for row in rows {
            assert!(page.contains(&format!("{row}\n")), "{row}\n{page}");
        }
    }

    #[test]
    fn numbers_have_commas() {
        let numbers = [(0.0, 0), (999.6, 0), (1_234_567.0, 0), (-12_345.67, 1), (-123.0, 0)];
        let texts = numbers.map(|(value, digits)| number(value, digits));
        assert_eq!(texts, ["0", "1,000", "1,234,567", "-12,345.7", "-123"]);
    }
}
