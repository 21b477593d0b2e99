//! Everything that describes one class of people.

use super::arrivals::{ArrivalArgs, ArrivalPlan};
use super::asking::AskingArgs;
use super::inputs::Inputs;
use super::people::PeopleArgs;
use super::recorded::RecordedArgs;
use crate::{ClassPlan, LoadTarget};
use flashweir_workload::ArrivalProcess;
use std::time::Duration;

/// When the people of a class come, what they ask for and what they do.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct ClassArgs {
    #[command(flatten)]
    arrivals: ArrivalArgs,
    #[command(flatten)]
    recorded: RecordedArgs,
    #[command(flatten)]
    asking: AskingArgs,
    #[command(flatten)]
    people: PeopleArgs,
}

/// A class as it is sent.
#[derive(Debug)]
pub(crate) struct Class {
    /// Arrivals of its people, if its own options describe them.
    pub(crate) arrivals: Option<ArrivalProcess>,
    /// Behaviour of its people.
    pub(crate) plan: ClassPlan,
}

impl ClassArgs {
    /// Arrivals alone; `None` if no option describes them.
    ///
    /// # Errors
    /// A file that cannot be read, numbers that make no schedule.
    pub(crate) fn arrival_plan(&self, inputs: &mut Inputs) -> anyhow::Result<Option<ArrivalPlan>> {
        self.arrivals.arrival_plan(&self.recorded, inputs)
    }

    /// Length of the arrivals, if an option gives it.
    pub(crate) fn duration(&self) -> Option<Duration> {
        self.arrivals.duration
    }

    /// The same options, with this duration if they say none.
    pub(crate) fn with_usual_duration(mut self, usual: Option<Duration>) -> Self {
        self.arrivals.duration = self.arrivals.duration.or(usual);
        self
    }

    /// The class that these options describe.
    ///
    /// # Errors
    /// Files that cannot be read, options that do not go together.
    pub(crate) fn class(
        &self,
        name: &str,
        target: &LoadTarget,
        seed: u64,
        inputs: &mut Inputs,
    ) -> anyhow::Result<Class> {
        let arrival_plan = self.arrival_plan(inputs)?;
        let recording = arrival_plan.as_ref().and_then(|arrival_plan| arrival_plan.recording.as_ref());
        let (popularity, paths) = self.asking.documents(target, recording, &self.recorded, seed, inputs)?;
        let mut plan = ClassPlan::new(name, self.asking.request(target, inputs)?, paths);
        plan.popularity = popularity;
        let in_closed_loop = arrival_plan.as_ref().is_some_and(|arrival_plan| arrival_plan.in_closed_loop);
        self.people.apply(in_closed_loop, &mut plan)?;
        Ok(Class { arrivals: arrival_plan.map(|arrival_plan| arrival_plan.arrivals), plan })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Words {
        #[command(flatten)]
        class: ClassArgs,
    }

    /// The class that options, divided by spaces, describe; the message if they do not.
    pub(crate) fn class(url: &str, options: &str) -> Result<Class, String> {
        class_and_notes(url, options).map(|(class, _)| class)
    }

    /// The same and what was noticed.
    pub(crate) fn class_and_notes(url: &str, options: &str) -> Result<(Class, Vec<String>), String> {
        let words = ["load"].into_iter().chain(options.split_whitespace());
        let words = Words::try_parse_from(words).map_err(|error| error.to_string())?;
        let target = LoadTarget::parse(url).map_err(|error| error.to_string())?;
        let mut inputs = Inputs::default();
        let class =
            words.class.class("all", &target, 1, &mut inputs).map_err(|error| format!("{error:#}"))?;
        Ok((class, inputs.notes().to_vec()))
    }
}
