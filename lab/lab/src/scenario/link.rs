//! Links between two nodes, from the file.

use crate::scenario::class::check_name;
use crate::scenario::packet_file::{DisciplineName, LinkFile};
use crate::scenario::problem::{Problem, within, wrong};
use crate::scenario::quantity::BitRate;
use crate::scenario::text::{Text, Time};
use flashweir_core::Duration;
use flashweir_sim::network::{Counter, Discipline, LinkSettings, PublishedSettings, PurgeSettings, Red, Rem};

/// A link of a scenario: its name, where it is, and how fast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// The nodes it connects: "there" is from the first to the second, "back" the other way.
    pub between: [String; 2],
    /// Bits a second, there and back.
    pub rates_bits_per_s: [u64; 2],
}

impl LinkFile {
    /// Name, ends and rates of the link that the table at `key` describes.
    pub(crate) fn link(&self, key: &str) -> Result<Link, Problem> {
        let [one, other] = &self.between;
        check_name(&format!("{key}.between"), one)?;
        check_name(&format!("{key}.between"), other)?;
        if one == other {
            return wrong(format!("{key}.between"), format!("it leads from \"{one}\" to itself"));
        }
        let name = self.name.clone().unwrap_or_else(|| format!("{one}-{other}"));
        check_name(&format!("{key}.name"), &name)?;
        let rate = |name: &str, own: Option<Text<BitRate>>| match (self.rate, own) {
            (Some(_), Some(_)) => {
                wrong(format!("{key}.{name}"), "rate is of both ways: expected one of them")
            }
            (Some(Text(BitRate(rate))), None) | (None, Some(Text(BitRate(rate)))) => Ok(rate),
            (None, None) => wrong(key, "missing key `rate`, or `rate_there` and `rate_back`"),
        };
        let rates_bits_per_s = [rate("rate_there", self.rate_there)?, rate("rate_back", self.rate_back)?];
        Ok(Link { name, between: self.between.clone(), rates_bits_per_s })
    }

    /// Both directions, alike but for their rates.
    pub(crate) fn directions(&self, key: &str, link: &Link) -> Result<[LinkSettings; 2], Problem> {
        let settings = LinkSettings {
            rate_bits_per_s: 0,
            delay: self.delay.map_or(Duration::ZERO, |Text(Time(delay))| delay),
            buffer: self.buffer.0.0,
            discipline: self.discipline(key)?,
            loss: within(format!("{key}.loss"), self.loss.unwrap_or(0.0), 0.0, 1.0)?,
        };
        Ok(link.rates_bits_per_s.map(|rate_bits_per_s| LinkSettings { rate_bits_per_s, ..settings.clone() }))
    }

    fn discipline(&self, key: &str) -> Result<Discipline, Problem> {
        self.check_company(key)?;
        let usual = RED_USUAL;
        let red = Red {
            threshold_low: self.threshold_low.unwrap_or(usual.threshold_low),
            threshold_high: self.threshold_high.unwrap_or(usual.threshold_high),
            probability_max: self.probability_max.unwrap_or(usual.probability_max),
            weight: self.weight.unwrap_or(usual.weight),
            packet_bytes: self.packet_bytes.map_or(usual.packet_bytes, Into::into),
            marks: self.ecn,
        };
        let usual = Rem::default();
        let rem = Rem {
            gamma: self.gamma.unwrap_or(usual.gamma),
            alpha: self.alpha.unwrap_or(usual.alpha),
            phi: self.phi.unwrap_or(usual.phi),
            target_packets: self.target_packets.unwrap_or(usual.target_packets),
            update: self.update.map_or(usual.update, |Text(Time(update))| update),
            packet_bytes: self.packet_bytes.map_or(usual.packet_bytes, Into::into),
            marks: self.ecn,
            ..usual
        };
        Ok(match self.discipline {
            DisciplineName::DropTail => Discipline::DropTail,
            DisciplineName::Red => Discipline::Red(red),
            DisciplineName::Rem => Discipline::Rem(rem),
            DisciplineName::BlackLike => Discipline::BlackLike { rem, period: POLICING_PERIOD },
            DisciplineName::PublishedPurge => Discipline::PublishedPurge(PublishedSettings {
                rem,
                period: POLICING_PERIOD,
                counter: Counter::AsPublished,
            }),
            DisciplineName::Purge => Discipline::Purge(PurgeSettings::over(rem)),
        })
    }

    /// Keys that go with one discipline only.
    fn check_company(&self, key: &str) -> Result<(), Problem> {
        use DisciplineName::{BlackLike, PublishedPurge, Purge, Red, Rem};
        const PRICED: &[DisciplineName] = &[Rem, BlackLike, PublishedPurge, Purge];
        const PRICED_NAMES: &str = "\"rem\", \"purge\", \"published_purge\" or \"black_like\"";
        const MARKING: &[DisciplineName] = &[Red, Rem, BlackLike, PublishedPurge, Purge];
        const MARKING_NAMES: &str = "\"red\", \"rem\", \"purge\", \"published_purge\" or \"black_like\"";
        let belongs: [(&str, bool, &[DisciplineName], &str); 11] = [
            ("ecn", self.ecn, MARKING, MARKING_NAMES),
            ("packet_bytes", self.packet_bytes.is_some(), MARKING, MARKING_NAMES),
            ("threshold_low", self.threshold_low.is_some(), &[Red], "\"red\""),
            ("threshold_high", self.threshold_high.is_some(), &[Red], "\"red\""),
            ("probability_max", self.probability_max.is_some(), &[Red], "\"red\""),
            ("weight", self.weight.is_some(), &[Red], "\"red\""),
            ("gamma", self.gamma.is_some(), PRICED, PRICED_NAMES),
            ("alpha", self.alpha.is_some(), PRICED, PRICED_NAMES),
            ("phi", self.phi.is_some(), PRICED, PRICED_NAMES),
            ("target_packets", self.target_packets.is_some(), PRICED, PRICED_NAMES),
            ("update", self.update.is_some(), PRICED, PRICED_NAMES),
        ];
        let alone =
            belongs.into_iter().find(|(_, given, with, _)| *given && !with.contains(&self.discipline));
        match alone {
            Some((name, _, _, with)) => {
                wrong(format!("{key}.{name}"), format!("goes with discipline = {with}"))
            }
            None => Ok(()),
        }
    }
}

/// Period in which BLACK and Purge as published compute shares: the second of the paper's Fig. 3.
const POLICING_PERIOD: Duration = Duration::from_secs(1);

/// Recommendation of RED's author since 1997 (Floyd, "RED: Discussions of Setting Parameters"): the upper
/// threshold three times the lower, a tenth at most. Packets are full segments.
const RED_USUAL: Red = Red {
    threshold_low: 5.0,
    threshold_high: 15.0,
    probability_max: 0.1,
    weight: 0.002,
    packet_bytes: 1_500,
    marks: false,
};
