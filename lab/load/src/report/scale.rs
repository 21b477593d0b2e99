//! From numbers to pixels and readable ticks.

/// Room that a tick and its label need along the axis, pixels.
const TICK_ROOM: f64 = 40.0;
/// More ticks than this are not easier to read, however long the axis.
const TICKS: f64 = 10.0;

/// A logarithmic axis shows at least a factor of ten, so that it always has ticks to read.
const DECADES_LEAST: f64 = 1.0;
/// A percentile axis reaches at least p99 and at most p99.9999: further needs more people than any run has.
const NINES: (f64, f64) = (2.0, 6.0);

/// One axis: a range of numbers laid over a range of pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Both ends as [`Spacing::place`] gives them.
    low: f64,
    high: f64,
    spacing: Spacing,
    pixels: (i32, i32),
}

/// Spacing of numbers on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// Equal differences have equal distances.
    Linear,
    /// Equal ratios have equal distances.
    Log,
    /// Shares of a whole: each further nine of a percentile has the same distance.
    Nines,
}

impl Spacing {
    /// Position of a number on an endless axis.
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.max(f64::MIN_POSITIVE).log10(),
            Self::Nines => -(1.0 - value).clamp(f64::MIN_POSITIVE, 1.0).log10(),
        }
    }
}

impl Scale {
    /// An axis from `low` to `high`. An empty or inverted range is widened, so that division is safe.
    pub(crate) fn linear(low: f64, high: f64, pixels: (i32, i32)) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, spacing: Spacing::Linear, pixels }
    }

    /// A logarithmic axis over whole decades around `low..high`; both must be positive.
    pub(crate) fn log(low: f64, high: f64, pixels: (i32, i32)) -> Self {
        let low_decade = low.log10().floor();
        let high_decade = high.log10().ceil().max(low_decade + 1.0);
        Self { low: low_decade, high: high_decade, spacing: Spacing::Log, pixels }
    }

    /// A logarithmic axis that ends where the numbers end; both must be positive. A narrow range is widened
    /// on both sides.
    pub(crate) fn log_between(low: f64, high: f64, pixels: (i32, i32)) -> Self {
        let (low, high) = (low.log10(), high.log10());
        let missing = (DECADES_LEAST - (high - low)).max(0.0) / 2.0;
        Self { low: low - missing, high: high + missing, spacing: Spacing::Log, pixels }
    }

    /// An axis of shares from 0 to the nine at or above `highest`, which is below 1; 1 itself lies at the
    /// end.
    pub(crate) fn nines(highest: f64, pixels: (i32, i32)) -> Self {
        let high = (Spacing::Nines.place(highest) - 1e-9).ceil().clamp(NINES.0, NINES.1);
        Self { low: 0.0, high, spacing: Spacing::Nines, pixels }
    }

    /// Position of a number, clamped to the axis so that nothing is drawn outside the plot.
    pub(crate) fn pixel(&self, value: f64) -> i32 {
        let share = self.share(value).clamp(0.0, 1.0);
        let (from, to) = (f64::from(self.pixels.0), f64::from(self.pixels.1));
        (from + share * (to - from)).round() as i32
    }

    /// Position of a number along the axis: 0 at its start, 1 at its end.
    pub(crate) fn share(&self, value: f64) -> f64 {
        (self.spacing.place(value) - self.low) / (self.high - self.low)
    }

    /// Spacing of numbers on it.
    pub(crate) fn spacing(&self) -> Spacing {
        self.spacing
    }

    /// Start of the axis: the foot of an area.
    pub(crate) fn foot(&self) -> i32 {
        self.pixels.0
    }

    /// Ticks with their labels, at most a dozen.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        match self.spacing {
            Spacing::Linear => self.linear_ticks(),
            Spacing::Log => self.log_ticks(),
            Spacing::Nines => self.nines_ticks(),
        }
    }

    fn linear_ticks(&self) -> Vec<(f64, String)> {
        let length = f64::from(self.pixels.0.abs_diff(self.pixels.1));
        let step = nice_step(self.high - self.low, (length / TICK_ROOM).clamp(2.0, TICKS));
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|n| n as f64 * step).map(|value| (value, number(value, decimals))).collect()
    }

    fn log_ticks(&self) -> Vec<(f64, String)> {
        let (low, high) = (self.low.floor() as i32, self.high.ceil() as i32);
        // Few decades leave room for the steps between them; many do not even leave room for each decade.
        let within: &[f64] = if high - low <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let every = (high - low) / 10 + 1;
        let mut ticks = Vec::new();
        for decade in (low..=high).step_by(every as usize) {
            for value in within.iter().map(|mantissa| mantissa * 10f64.powi(decade)) {
                if (self.low - 1e-9..=self.high + 1e-9).contains(&value.log10()) {
                    ticks.push((value, number(value, (-decade).max(0) as usize)));
                }
            }
        }
        ticks
    }

    fn nines_ticks(&self) -> Vec<(f64, String)> {
        let nines = 1..=self.high as i32;
        let named = nines.map(|nines| {
            let share = 1.0 - 10f64.powi(-nines);
            (share, format!("p{:.decimals$}", share * 100.0, decimals = (nines - 2).max(0) as usize))
        });
        [(0.0, "p0".to_owned()), (0.5, "p50".to_owned())].into_iter().chain(named).collect()
    }
}

/// A round number at or above `value`, for the end of an axis that starts at 0.
pub(crate) fn nice_ceiling(value: f64) -> f64 {
    let step = nice_step(value.max(f64::MIN_POSITIVE), TICKS);
    (value / step).ceil() * step
}

fn nice_step(range: f64, ticks: f64) -> f64 {
    let rough = range / ticks;
    let magnitude = 10f64.powf(rough.log10().floor());
    let mantissa = rough / magnitude;
    let nice = [1.0, 2.0, 5.0].into_iter().find(|nice| mantissa <= nice + 1e-9).unwrap_or(10.0);
    nice * magnitude
}

/// A number with commas between thousands, rounded to `decimals` decimals.
///
/// ```
/// assert_eq!(flashweir_load::report::number(14356.2, 0), "14,356");
/// ```
#[must_use]
pub fn number(value: f64, decimals: usize) -> String {
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = plain.split_once('.').map_or((plain.as_str(), None), |(w, f)| (w, Some(f)));
    let mut text = String::new();
    if value < 0.0 {
        text.push('−');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(Scale::linear(0.0, 43.0, (0, 400))).join(" "), "0 5 10 15 20 25 30 35 40");
        assert_eq!(labels(Scale::linear(0.0, 1200.0, (0, 400))).join(" "), "0 200 400 600 800 1,000 1,200");
        assert_eq!(labels(Scale::linear(0.0, 0.6, (0, 400))).join(" "), "0.0 0.1 0.2 0.3 0.4 0.5 0.6");
        assert_eq!(labels(Scale::log(3.0, 1500.0, (0, 400))).join(" "), "1 10 100 1,000 10,000");
        assert_eq!(labels(Scale::log(0.2, 0.9, (0, 400))).join(" "), "0.1 0.2 0.5 1");
    }

    #[test]
    fn a_close_logarithmic_axis_ends_at_its_numbers() {
        assert_eq!(labels(Scale::log_between(0.3, 40.0, (0, 400))).join(" "), "0.5 1 2 5 10 20");
        assert_eq!(labels(Scale::log_between(7.0, 7.0, (0, 400))).join(" "), "5 10 20");
        assert_eq!(Scale::log_between(7.0, 7.0, (0, 400)).pixel(7.0), 200);
        assert_eq!([3.0, 300.0].map(|end| Scale::log_between(3.0, 300.0, (0, 400)).pixel(end)), [0, 400]);
    }

    #[test]
    fn every_nine_is_as_wide_as_the_one_before() {
        let scale = Scale::nines(0.9995, (0, 400));
        assert_eq!(labels(scale).join(" "), "p0 p50 p90 p99 p99.9 p99.99");
        assert_eq!(
            [0.0, 0.9, 0.99, 0.999, 0.9999, 1.0].map(|share| scale.pixel(share)),
            [0, 100, 200, 300, 400, 400]
        );
        assert_eq!(labels(Scale::nines(0.999, (0, 400))).len(), 5);
        assert_eq!(labels(Scale::nines(0.0, (0, 400))).join(" "), "p0 p50 p90 p99");
        assert_eq!(labels(Scale::nines(1.0, (0, 400))).last().map(String::as_str), Some("p99.9999"));
    }

    #[test]
    fn numbers_outside_the_axis_stay_on_its_edge() {
        let scale = Scale::linear(0.0, 10.0, (200, 0));
        assert_eq!([scale.pixel(-5.0), scale.pixel(5.0), scale.pixel(99.0)], [200, 100, 0]);
        assert_eq!(Scale::log(1.0, 100.0, (0, 100)).pixel(0.0), 0);
        assert_eq!(Scale::linear(3.0, 3.0, (0, 100)).pixel(3.0), 0);
    }

    #[test]
    fn a_nice_ceiling_is_not_below_its_value() {
        for value in [0.001, 0.7, 1.0, 199.0, 1043.0, 98765.0] {
            assert!(nice_ceiling(value) >= value && nice_ceiling(value) < value * 1.3, "{value}");
        }
    }
}
