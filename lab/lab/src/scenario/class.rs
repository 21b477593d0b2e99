//! Behaviour of people, from the file.

use crate::scenario::file::{ClassFile, SignsFile, SignsOf};
use crate::scenario::problem::{Problem, within, wrong};
use crate::scenario::text::{Text, Time};
use flashweir_core::Duration;
use flashweir_core::limits::DOCUMENTS;
use flashweir_sim::request::{ClassModel, SignModel};
use flashweir_workload::documents::Popularity;
use flashweir_workload::people::{Habits, Retry, Session};
use std::num::NonZeroU32;

/// Characters of a class's name at most: it heads a row of a table.
const NAME_CHARACTERS: usize = 40;

impl ClassFile {
    /// The class that the table at `key` describes, of this class of the sentry's policy; whether the gate
    /// compares clients.
    pub(crate) fn model(
        &self,
        key: &str,
        policy_class: u8,
        compares_clients: bool,
    ) -> Result<ClassModel, Problem> {
        let at = |name: &str| format!("{key}.{name}");
        check_name(&at("name"), &self.name)?;
        let time = |name: &str, value: Option<Text<Time>>, usual: Duration| match value {
            Some(Text(Time(time))) if time.is_zero() => wrong(at(name), "expected more than no time"),
            Some(Text(Time(time))) => Ok(time),
            None => Ok(usual),
        };
        let usual = ClassModel::new(&self.name, self.work.0.0);
        Ok(ClassModel {
            host: self.host,
            policy_class,
            popularity: self.popularity(key)?,
            sizes: self.sizes.map_or(usual.sizes, |Text(sizes)| sizes),
            habits: Habits {
                patience: self.patience.map(|Text(patience)| patience),
                session: self.session(key)?,
                retry: self.retry(key)?,
            },
            goes_on_unserved: self.goes_on_unserved,
            timeout: time("timeout", self.timeout, usual.timeout)?,
            good_within: time("target", self.target, usual.good_within)?,
            signs: self.signs.map(|signs| signs.model(&at("signs"), compares_clients)).transpose()?,
            ..usual
        })
    }

    fn popularity(&self, key: &str) -> Result<Popularity, Problem> {
        let count = self.documents;
        if count.get() as usize > DOCUMENTS {
            return wrong(format!("{key}.documents"), format!("{count} are more than {DOCUMENTS}"));
        }
        match self.zipf {
            Some(alpha) => Popularity::zipf(alpha, count.get())
                .map_err(|error| Problem::new(format!("{key}.zipf"), error.to_string())),
            None => Ok(Popularity::InOrder { count }),
        }
    }

    fn session(&self, key: &str) -> Result<Session, Problem> {
        if self.think.is_some() && self.session.is_none() {
            return wrong(format!("{key}.think"), "goes with session");
        }
        let usual = Session::default();
        Ok(Session {
            requests: self.session.map_or(usual.requests, |Text(requests)| requests),
            think: self.think.map_or(usual.think, |Text(think)| think),
        })
    }

    fn retry(&self, key: &str) -> Result<Option<Retry>, Problem> {
        let Some(Text(pace)) = self.retry else {
            let alone = [
                ("retry_share", self.retry_share.is_some()),
                ("tries", self.tries.is_some()),
                ("retry_on", self.retry_on.is_some()),
            ];
            return match alone.into_iter().find(|(_, given)| *given) {
                Some((name, _)) => wrong(format!("{key}.{name}"), "goes with retry"),
                None => Ok(None),
            };
        };
        // As in the load tool: three tries, after refusals and time-outs.
        let share = within(format!("{key}.retry_share"), self.retry_share.unwrap_or(1.0), 0.0, 1.0)?;
        let on = match self.retry_on {
            Some(Text(on)) => on,
            None => "refusal,timeout".parse().map_err(|error| Problem::new(key, format!("{error}")))?,
        };
        Ok(Some(Retry { share, pace, tries_most: self.tries.map_or(3, |tries| tries.get()), on }))
    }
}

impl SignsFile {
    fn model(&self, key: &str, is_shown: bool) -> Result<SignModel, Problem> {
        let assets = self.assets.unwrap_or(ASSETS);
        if assets > ASSETS_MAX {
            return wrong(format!("{key}.assets"), format!("{assets} are more than {ASSETS_MAX}"));
        }
        let usual = match (self.of, self.addresses) {
            (SignsOf::People, addresses) => SignModel { addresses, ..SignModel::people(assets) },
            (SignsOf::Crawler, _) if self.assets.is_some() => {
                return wrong(format!("{key}.assets"), "a crawler asks for pages only");
            }
            (SignsOf::Crawler, addresses) => SignModel::crawler(addresses.unwrap_or(NonZeroU32::MIN)),
        };
        let stacks = if self.of == SignsOf::People { BROWSER_STACKS } else { CRAWLER_STACK };
        Ok(SignModel { tls_stacks: self.tls.then_some(stacks), is_shown, ..usual })
    }
}

/// Requests after each page, if it is not said.
const ASSETS: u32 = 3;
/// More than any page has.
const ASSETS_MAX: u32 = 1_000;
/// TLS stacks of browsers, and a crawler's own, by number.
const BROWSER_STACKS: std::ops::Range<u32> = 0..4;
const CRAWLER_STACK: std::ops::Range<u32> = 9..10;

/// Names of classes and windows head rows and stand before a dot.
pub(crate) fn check_name(key: &str, name: &str) -> Result<(), Problem> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    if (1..=NAME_CHARACTERS).contains(&name.len()) && name.bytes().all(fits) {
        return Ok(());
    }
    wrong(key, format!("\"{name}\" is no name: expected 1 to {NAME_CHARACTERS} of a-z, 0-9, _ and -"))
}
