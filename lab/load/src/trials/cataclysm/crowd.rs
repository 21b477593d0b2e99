//! The crowd of the figure.

/// Names of the classes, the most important first.
pub(super) const CLASSES: [&str; 3] = ["gold", "silver", "bronze"];
/// People give up after this time, seconds.
pub(super) const PATIENCE_S: f64 = 2.0;
/// The paper's target, seconds; not scaled.
pub(super) const TARGET_S: f64 = 1.0;
/// Of the paper's time, seconds.
pub(super) const LENGTH_S: f64 = 480.0;
/// Capacity of the paper's three servers, requests a second: 15.5 ms of work for each.
const PAPER_CAPACITY_RPS: f64 = 3.0 / 0.0155;

/// Steps of each class's curve: from a second on, a rate in requests a second. The paper gives its curves
/// only as a figure: the moments and rates are those the simulator uses.
const CURVES: [&[(f64, f64)]; 3] = [
    &[(0.0, 20.0), (210.0, 200.0), (385.0, 20.0)],
    &[(0.0, 40.0), (195.0, 120.0), (400.0, 40.0)],
    &[(0.0, 60.0), (130.0, 130.0), (405.0, 60.0)],
];

/// The crowd of the figure, scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crowd {
    /// Number of the paper's seconds that pass in one of ours.
    pub speed_up: f64,
    /// Capacity of the servers together, requests a second.
    pub capacity_rps: f64,
}

impl Crowd {
    /// Ours for each request of the paper's.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.capacity_rps / PAPER_CAPACITY_RPS
    }

    /// Of our time, whole seconds.
    #[must_use]
    pub fn length_s(&self) -> u64 {
        (LENGTH_S / self.speed_up).ceil() as u64
    }

    /// A file of classes for `flashweir load`. Each person says their class in the field `x-class`.
    #[must_use]
    pub fn classes(&self) -> String {
        let classes: Vec<String> =
            CLASSES.iter().zip(CURVES).map(|(name, curve)| self.class(name, curve)).collect();
        classes.join("\n")
    }

    fn class(&self, name: &str, curve: &[(f64, f64)]) -> String {
        let rate = |at: usize| curve[at].1 * self.scale();
        let steps: Vec<String> = (1..curve.len())
            .map(|at| format!("\"{:.3}@{:.3}s\"", rate(at), curve[at].0 / self.speed_up))
            .collect();
        format!(
            "[[class]]\nname = \"{name}\"\nrate = {:.3}\nstep = [{}]\nduration = \"{}s\"\nheader = [\"x-class: {name}\"]\n\
             target = \"{TARGET_S}s\"\ntimeout = \"{PATIENCE_S}s\"\n",
            rate(0),
            steps.join(", "),
            self.length_s()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_rates_are_scaled() {
        let crowd = Crowd { speed_up: 5.0, capacity_rps: PAPER_CAPACITY_RPS / 2.0 };
        assert_eq!(crowd.length_s(), 96);
        let text = crowd.classes();
        assert!(
            text.contains(
                "name = \"gold\"\nrate = 10.000\nstep = [\"100.000@42.000s\", \"10.000@77.000s\"]\n"
            ),
            "{text}"
        );
        assert_eq!(text.matches("duration = \"96s\"").count(), 3);
    }
}
