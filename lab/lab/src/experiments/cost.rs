//! Cost of the longest figures, so that it can be printed before one of them begins.

/// Figures that take more than a minute: seconds with the default options on two cores of a development
/// machine, release build, from the processor time that their runs take. Each is in a laboratory by itself;
/// with others in one, shared runs are made once.
const SECONDS: [(&str, u64); 11] = [
    ("NEWS-T1", 130),
    ("NEWS-F14", 150),
    ("NEWS-F15", 240),
    ("NEWS-F16", 70),
    ("NEWS-7.6.1", 130),
    ("NEWS-7.6.2", 150),
    ("NEWS-F12", 70),
    ("NEWS-F13", 70),
    ("CAT-7V", 70),
    ("PURGE-T2", 240),
    ("PURGE-T3", 240),
];

/// Seconds that a figure takes with the default options and two cores, where that is more than a minute.
#[must_use]
pub fn cost_s(id: &str) -> Option<u64> {
    SECONDS.iter().find(|(long, _)| *long == id).map(|&(_, seconds)| seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::EXPERIMENTS;

    #[test]
    fn every_long_figure_is_a_figure_and_takes_more_than_a_minute() {
        for (id, seconds) in SECONDS {
            assert!(EXPERIMENTS.iter().any(|experiment| experiment.id == id), "{id}");
            assert!(seconds > 60 && cost_s(id) == Some(seconds));
        }
        assert_eq!(cost_s("INTEL-T1"), None);
    }
}
