//! The scenario that cannot be wrong.

use crate::scenario::accept::{self, Accepted, Names};
use crate::scenario::arrivals::Around;
use crate::scenario::bounds;
use crate::scenario::class::check_name;
use crate::scenario::error::ScenarioError;
use crate::scenario::file::File;
use crate::scenario::link::Link;
use crate::scenario::packets;
use crate::scenario::problem::{Problem, within, wrong};
use crate::scenario::sentry;
use crate::scenario::settings::Settings;
use crate::scenario::text::{Text, Time};
use flashweir_config::location::{line_at, line_of_key};
use flashweir_core::Duration;
use flashweir_core::limits::{SCENARIO_CLASSES, SCENARIO_FILE_BYTES, SCENARIO_SEEDS};
use flashweir_sim::request::{self, NetworkModel, PacketNetwork};
use flashweir_workload::{Schedule, Share, Stream};
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;
use toml::{Table, Value};

/// A scenario file, checked: any seed makes a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    title: String,
    first_seed: u64,
    seeds: u32,
    windows: Vec<Window>,
    accepted: Vec<Accepted>,
    /// In the order of the network's wires.
    links: Vec<Link>,
    /// Revenue of one request of each class, answered in time.
    revenues: Vec<f64>,
    run: request::Scenario,
}

/// A named stretch of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its name.
    pub name: String,
    /// The bins of the series within it.
    pub bins: Range<usize>,
    /// Beginning, from the start of the run.
    pub from: Duration,
    /// End, from the start of the run.
    pub to: Duration,
}

impl Scenario {
    /// Reads and checks a file, with the settings in place of what is written in it.
    ///
    /// # Errors
    /// The first thing that is wrong, as one [`ScenarioError`].
    pub fn load(path: &Path, settings: &Settings) -> Result<Self, ScenarioError> {
        let unreadable = |reason| ScenarioError::Unreadable { file: path.to_owned(), reason };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut text = String::new();
        file.take(SCENARIO_FILE_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > SCENARIO_FILE_BYTES {
            return Err(unreadable(std::io::Error::other(format!(
                "it has more than {SCENARIO_FILE_BYTES} bytes"
            ))));
        }
        Self::from_toml(&text, &path.display().to_string(), settings)
    }

    /// Checks the text of a file called `file_name`. Tables that it names are read; their names are relative
    /// to it.
    ///
    /// # Errors
    /// The first thing that is wrong, as one [`ScenarioError`].
    pub fn from_toml(text: &str, file_name: &str, settings: &Settings) -> Result<Self, ScenarioError> {
        let file = parse(text, file_name, settings)?;
        let directory = Path::new(file_name).parent().unwrap_or(Path::new(""));
        Self::check(&file, directory).map_err(|problem| locate(problem, text, file_name, settings))
    }

    fn check(file: &File, directory: &Path) -> Result<Self, Problem> {
        let length = match file.duration {
            Some(Text(Time(length))) if length.is_zero() => {
                return wrong("duration", "expected more than no time");
            }
            length => length.map(|Text(Time(length))| length),
        };
        if file.seeds == 0 || file.seeds > SCENARIO_SEEDS {
            return wrong("seeds", format!("{} is out of range: expected 1 to {SCENARIO_SEEDS}", file.seeds));
        }
        let streams = streams(file, Around { length, directory })?;
        let schedule =
            Schedule::new(streams, file.seed).map_err(|error| Problem::new("workload", error.to_string()))?;
        let policy_classes = sentry::policy_classes(&file.classes)?;
        let classes = file.classes.iter().zip(&policy_classes).enumerate();
        let classes = classes
            .map(|(index, (class, place))| {
                class.model(&format!("class[{index}]"), *place, file.controller.mode.compares_clients())
            })
            .collect::<Result<_, _>>()?;
        let faults = file.faults.iter().enumerate();
        let faults =
            faults.map(|(index, fault)| fault.fault(&format!("fault[{index}]"))).collect::<Result<_, _>>()?;
        let delay = file.network.one_way_delay.map_or(Duration::ZERO, |Text(Time(delay))| delay);
        let (network, links) = match packets::network(file, schedule.length())? {
            Some((network, links)) => (NetworkModel::Packets(Box::new(network)), links),
            None => (NetworkModel::Delay(delay), Vec::new()),
        };
        let run = request::Scenario {
            schedule,
            classes,
            seed: file.seed,
            network,
            policy: file.controller.policy(&file.classes)?,
            requests_in_flight: file.controller.max_requests_in_flight,
            server: file.server.model()?,
            faults,
            bin: file.bin.0.0,
        };
        run.check().map_err(|error| as_key(&error, &run, file))?;
        let documents = file.classes.iter().filter(|class| class.zipf.is_some());
        let documents = documents.map(|class| u64::from(class.documents.get())).sum();
        bounds::check(&run, documents, file.seeds)?;
        let windows = windows(file, &run)?;
        let accepted = accepted(file, &windows, &run, &links)?;
        Ok(Self {
            title: file.title.clone(),
            first_seed: file.seed,
            seeds: file.seeds,
            windows,
            accepted,
            links,
            revenues: sentry::revenues(&file.classes, &policy_classes),
            run,
        })
    }

    /// Its title; may be empty.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The seeds of its runs.
    #[must_use]
    pub fn seeds(&self) -> Vec<u64> {
        (0..u64::from(self.seeds)).map(|place| self.first_seed.wrapping_add(place)).collect()
    }

    /// The run of one seed: it draws the schedule, the people, their work and the gate's keys.
    #[must_use]
    pub fn run(&self, seed: u64) -> request::Scenario {
        let schedule = Schedule::new(self.run.schedule.streams().to_vec(), seed);
        // The same streams made a schedule when the file was checked; the seed is not among what is checked.
        let schedule = schedule.unwrap_or_else(|_| self.run.schedule.clone());
        request::Scenario { schedule, seed, ..self.run.clone() }
    }

    /// Its windows, in the order of their names.
    #[must_use]
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Names of its classes, in their order.
    pub fn classes(&self) -> impl Iterator<Item = &str> {
        self.run.classes.iter().map(|class| class.name.as_str())
    }

    /// Its links, in their order; none at the level of requests.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Names of its long transfers, in their order.
    pub fn transfers(&self) -> impl Iterator<Item = &str> {
        self.packets()
            .into_iter()
            .flat_map(|packets| &packets.transfers)
            .map(|transfer| transfer.name.as_str())
    }

    /// Names of its sources of datagrams, in their order.
    pub fn datagrams(&self) -> impl Iterator<Item = &str> {
        self.packets().into_iter().flat_map(|packets| &packets.datagrams).map(|source| source.name.as_str())
    }

    /// Length of the arrivals.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.run.schedule.length()
    }

    pub(crate) fn accepted(&self) -> &[Accepted] {
        &self.accepted
    }

    pub(crate) fn revenues(&self) -> &[f64] {
        &self.revenues
    }

    pub(crate) fn has_router(&self) -> bool {
        self.packets().is_some_and(|packets| packets.router.is_some())
    }

    fn packets(&self) -> Option<&PacketNetwork> {
        match &self.run.network {
            NetworkModel::Packets(packets) => Some(packets),
            NetworkModel::Delay(_) => None,
        }
    }

    pub(crate) fn template(&self) -> &request::Scenario {
        &self.run
    }
}

/// The streams of people: one for all classes with a weight, and one for each class that says when its own
/// come.
fn streams(file: &File, around: Around<'_>) -> Result<Vec<Stream>, Problem> {
    if file.classes.is_empty() || file.classes.len() > SCENARIO_CLASSES {
        let count = file.classes.len();
        return wrong("class", format!("{count} [[class]] tables: expected 1 to {SCENARIO_CLASSES}"));
    }
    let mut shared = Vec::new();
    let mut streams = Vec::new();
    for (index, (class, number)) in file.classes.iter().zip(0..).enumerate() {
        let key = format!("class[{index}]");
        if file.classes[..index].iter().any(|other| other.name == class.name) {
            return wrong(format!("{key}.name"), format!("there is a class \"{}\" already", class.name));
        }
        match (&class.workload, class.weight) {
            (Some(_), Some(_)) => {
                return wrong(format!("{key}.weight"), "its own [class.workload] says when its people come");
            }
            (Some(own), None) => {
                let arrivals = own.process(&format!("{key}.workload"), around)?;
                streams.push(Stream { arrivals, classes: vec![Share { class: number, weight: 1.0 }] });
            }
            (None, weight) => {
                let weight = within(format!("{key}.weight"), weight.unwrap_or(1.0), f64::MIN_POSITIVE, 1e9)?;
                shared.push(Share { class: number, weight });
            }
        }
    }
    match (&file.workload, shared.is_empty()) {
        (Some(workload), false) => {
            let arrivals = workload.process("workload", around)?;
            streams.insert(0, Stream { arrivals, classes: shared });
        }
        (Some(_), true) => return wrong("workload", "no class has a share of its people"),
        (None, false) => return wrong("workload", "missing: when do people come?"),
        (None, true) => {}
    }
    Ok(streams)
}

fn windows(file: &File, run: &request::Scenario) -> Result<Vec<Window>, Problem> {
    if file.window.len() > SCENARIO_CLASSES {
        return wrong("window", format!("more than {SCENARIO_CLASSES} windows"));
    }
    let bin = run.bin.as_nanos();
    let window = |(name, Text(stretch)): (&String, &Text<crate::scenario::text::Stretch>)| {
        let key = format!("window.{name}");
        check_name(&key, name)?;
        let (from, to) = (stretch.from, stretch.to);
        if to > run.schedule.length() {
            return wrong(key, "it ends after the run");
        }
        if from.as_nanos() % bin != 0 || to.as_nanos() % bin != 0 {
            return wrong(key, "it begins or ends within a bin: see bin");
        }
        // A run has fewer bins than SIM_SERIES_BINS: it was checked.
        let bins = (from.as_nanos() / bin) as usize..(to.as_nanos() / bin) as usize;
        Ok(Window { name: name.clone(), bins, from, to })
    };
    file.window.iter().map(window).collect()
}

/// The accepted ranges, with names that are unique.
fn accepted(
    file: &File,
    windows: &[Window],
    run: &request::Scenario,
    links: &[Link],
) -> Result<Vec<Accepted>, Problem> {
    let names = Names {
        windows: &windows.iter().map(|window| window.name.as_str()).collect::<Vec<_>>(),
        classes: &run.classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>(),
        links: &links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>(),
        transfers: &file.transfers.iter().map(|transfer| transfer.name.as_str()).collect::<Vec<_>>(),
        datagrams: &file.datagrams.iter().map(|source| source.name.as_str()).collect::<Vec<_>>(),
    };
    names.check()?;
    accept::read(&file.accept, names)
}

/// The simulator's own checks, by the file's keys.
fn as_key(error: &request::ScenarioError, run: &request::Scenario, file: &File) -> Problem {
    let of_class = run.classes.iter().enumerate().find_map(|(index, class)| {
        let field = error.key.strip_prefix(&format!("class {}, ", class.name))?;
        Some(format!("class[{index}].{field}"))
    });
    let key = of_class.unwrap_or_else(|| match error.key.strip_prefix("network.") {
        Some("one_way_delay") => error.key.clone(),
        Some(key) => packets::key_of(key, file),
        None if error.key == "schedule" => "workload".to_owned(),
        None => error.key.replace("faults", "fault").replace("policy.", "controller."),
    });
    Problem::new(key, error.problem.clone())
}

fn parse(text: &str, file_name: &str, settings: &Settings) -> Result<File, ScenarioError> {
    let mut document: Table =
        toml::from_str(text).map_err(|error: toml::de::Error| ScenarioError::InFile {
            file: file_name.to_owned(),
            line: error.span().map_or(1, |span| line_at(text, span.start)),
            key: String::new(),
            problem: error.message().to_owned(),
        })?;
    settings.apply(&mut document)?;
    serde_path_to_error::deserialize(Value::Table(document)).map_err(|error| {
        let key = error.path().to_string();
        let key = if key == "." { String::new() } else { key };
        // The file's words, not those of serde and Rust.
        let said = error.inner().message();
        let said = said.replace("unknown field", "unknown key").replace("missing field", "missing key");
        let said = said.replace("a nonzero u32", "a whole number above zero");
        locate(Problem::new(key, said), text, file_name, settings)
    })
}

fn locate(problem: Problem, text: &str, file_name: &str, settings: &Settings) -> ScenarioError {
    let Problem { key, what: problem } = problem;
    if let Some((setting, set)) = settings.setting_for(&key) {
        // The setting says the key already, unless it set a whole table.
        let problem = if set == key { problem } else { format!("{key}: {problem}") };
        return ScenarioError::InSetting { setting: setting.to_owned(), problem };
    }
    ScenarioError::InFile { file: file_name.to_owned(), line: line_of_key(text, &key), key, problem }
}
