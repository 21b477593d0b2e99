//! Processor time of a request, as a scenario file says it.

use crate::scenario::text::Time;
use flashweir_sim::request::Work;
use std::str::FromStr;

/// `5ms`, `exp:5ms`, `pareto:SHAPE:LEAST:MOST` or `two-point:SHORT:LONG:SHARE`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WorkText(pub(crate) Work);

impl FromStr for WorkText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        read(text).map(Self).ok_or_else(|| {
            format!(
                "\"{text}\" is not work: expected 5ms, exp:5ms, pareto:SHAPE:LEAST:MOST like pareto:1.5:1ms:1s, or \
                 two-point:SHORT:LONG:SHARE like two-point:1ms:50ms:0.1"
            )
        })
    }
}

fn read(text: &str) -> Option<Work> {
    let time = |text: &str| text.parse().ok().map(|Time(time)| time).filter(|time| !time.is_zero());
    let parts: Vec<&str> = text.split(':').collect();
    match parts[..] {
        [constant] => time(constant).map(Work::Constant),
        ["exp", mean] => Some(Work::Exponential { mean: time(mean)? }),
        ["pareto", shape, least, most] => {
            Some(Work::Pareto { shape: shape.parse().ok()?, least: time(least)?, most: time(most)? })
        }
        ["two-point", short, long, share] => {
            let long_share = share.parse().ok()?;
            Some(Work::TwoPoint { short: time(short)?, long: time(long)?, long_share })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_core::Duration;

    #[test]
    fn work_is_read_in_all_its_kinds() {
        let ms = Duration::from_millis;
        for (text, work) in [
            ("5ms", Work::Constant(ms(5))),
            ("exp:5ms", Work::Exponential { mean: ms(5) }),
            ("pareto:1.5:1ms:1s", Work::Pareto { shape: 1.5, least: ms(1), most: ms(1000) }),
            ("two-point:1ms:50ms:0.1", Work::TwoPoint { short: ms(1), long: ms(50), long_share: 0.1 }),
        ] {
            assert_eq!(text.parse(), Ok(WorkText(work)));
        }
        for wrong in
            ["", "5", "0ms", "exp:", "exp:0s", "pareto:1.5:1ms", "two-point:1ms:2ms:x", "-5ms", "normal:5ms"]
        {
            let said = wrong.parse::<WorkText>().unwrap_err();
            assert!(said.starts_with(&format!("\"{wrong}\" is not work")), "{said}");
        }
    }
}
