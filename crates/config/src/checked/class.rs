//! Checks `[[class]]`: each class, and that together they take every request.

use core::time::Duration;
use std::path::Path;

use flashweir_admission::sentry::ClassPolicy;
use flashweir_core::Rate;
use flashweir_core::limits::{CLASSES, REQUESTS_HELD};
use http::HeaderName;

use super::ClassRules;
use super::name::name;
use super::range::{duration_within, within};
use super::rules::{cookie_name, field_name};
use super::sentry::{TARGET_LONGEST, TARGET_SHORTEST};
use crate::error::Problem;
use crate::file::{ClassFile, FairBy as FairByFile};

/// One class of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Fit for a metric label; each once in a service.
    pub name: String,
    /// Which requests it takes; empty in the last class of a service and in no other.
    pub rules: ClassRules,
    /// What one request answered in time is worth, from 0.001 to 1,000,000.
    pub revenue: f64,
    /// Requests a second let in at any load, from 0 to 1,000,000.
    pub guaranteed_rate_rps: f64,
    /// Its own response-time target.
    pub response_target: Option<Duration>,
    /// Requests that may wait; `None` for as many as can be answered in time.
    pub queue: Option<u32>,
    /// Among whom its share is divided.
    pub fair_by: FairBy,
    /// Never counted, limited or made to wait.
    pub exempt: bool,
}

/// Among whom a class's share is divided; whoever lacks the header or cookie counts for the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FairBy {
    /// An IPv4 /24 network or an IPv6 /56.
    #[default]
    Network,
    /// One address.
    Address,
    /// The value of a field.
    Header(HeaderName),
    /// The value of a cookie.
    Cookie(Box<str>),
}

impl From<&Class> for ClassPolicy {
    fn from(class: &Class) -> Self {
        Self {
            revenue: class.revenue,
            guaranteed_rate: Rate::from_per_second(class.guaranteed_rate_rps),
            target: class.response_target,
            queue: class.queue,
        }
    }
}

/// The name of the class that takes what no other does.
const REST: &str = "default";

/// Checks the classes of one service: 1 to [`CLASSES`], the last without rules.
pub(super) fn check_classes(files: Vec<ClassFile>, directory: &Path) -> Result<Vec<Class>, Problem> {
    let count = files.len();
    let classes = files.into_iter().enumerate();
    let mut classes: Vec<Class> =
        classes.map(|(index, file)| Class::check(index, file, directory)).collect::<Result<_, _>>()?;
    for (index, class) in classes.iter().enumerate() {
        let earlier = classes.get(..index).unwrap_or_default();
        if let Some(at) = earlier.iter().position(|other| other.name == class.name) {
            let what = format!("`{}` is the name of class[{at}], too, expected different ones", class.name);
            return Err(Problem::new(format!("class[{index}].name"), what));
        }
        if let Some(at) = earlier.iter().position(|other| other.rules.cover(&class.rules)) {
            return Err(Problem::new(format!("class[{index}]"), never_matches(class, at, &classes[at])));
        }
    }
    let takes_all = classes.last().is_some_and(|class| class.rules.are_empty());
    if !takes_all {
        if let Some(at) = classes.iter().position(|class| class.name == REST) {
            let what = format!(
                "`{REST}` is the name of the class that is added for all other requests, expected another name, or no \
                 rules and the last place"
            );
            return Err(Problem::new(format!("class[{at}].name"), what));
        }
        classes.push(Class::rest());
    }
    if classes.len() > CLASSES {
        let added = if takes_all { "" } else { " (one is added for all other requests)" };
        return Err(Problem::new("class", format!("{count} classes, expected at most {CLASSES}{added}")));
    }
    Ok(classes)
}

fn never_matches(class: &Class, at: usize, earlier: &Class) -> String {
    let how = if earlier.rules.are_empty() {
        "has no rules and takes every request"
    } else {
        "takes all that it would"
    };
    format!(
        "`{}` can never match: class[{at}] `{}` comes first and {how}, expected the special before the general",
        class.name, earlier.name
    )
}

impl Class {
    fn rest() -> Self {
        Self {
            name: REST.to_owned(),
            rules: ClassRules::default(),
            revenue: 1.0,
            guaranteed_rate_rps: 0.0,
            response_target: None,
            queue: None,
            fair_by: FairBy::default(),
            exempt: false,
        }
    }

    fn check(index: usize, file: ClassFile, directory: &Path) -> Result<Self, Problem> {
        let at = |key: &str| format!("class[{index}].{key}");
        let of_no_use = [
            ("guaranteed_rate", file.guaranteed_rate > 0.0),
            ("response_target", file.response_target.is_some()),
            ("queue", file.queue.is_some()),
        ];
        if file.exempt
            && let Some((key, _)) = of_no_use.into_iter().find(|(_, written)| *written)
        {
            return Err(Problem::new(
                at(key),
                "has no use in a class that is exempt, expected one of the two",
            ));
        }
        let target =
            |target| duration_within(&at("response_target"), target, TARGET_SHORTEST, TARGET_LONGEST);
        let queue = |queue| within(&at("queue"), queue, 0, REQUESTS_HELD as u32);
        Ok(Self {
            name: name(&at("name"), file.name)?,
            rules: ClassRules::check(&at("match"), file.rules, directory)?,
            revenue: within(&at("revenue"), file.revenue, 0.001, 1e6)?,
            guaranteed_rate_rps: within(&at("guaranteed_rate"), file.guaranteed_rate, 0.0, 1e6)?,
            response_target: file.response_target.map(target).transpose()?,
            queue: file.queue.map(queue).transpose()?,
            fair_by: fair_by(&at("fair_by"), file.fair_by)?,
            exempt: file.exempt,
        })
    }
}

fn fair_by(key: &str, file: FairByFile) -> Result<FairBy, Problem> {
    Ok(match file {
        FairByFile::Network => FairBy::Network,
        FairByFile::Address => FairBy::Address,
        FairByFile::Header(name) => FairBy::Header(field_name(&format!("{key}.header"), &name)?),
        FairByFile::Cookie(name) => FairBy::Cookie(cookie_name(&format!("{key}.cookie"), &name)?),
    })
}
