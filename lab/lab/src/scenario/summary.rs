//! Mean and confidence interval over seeds.

/// Summary of one number over several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The mean over the runs.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of that mean; `None` of a single run.
    pub half_width: Option<f64>,
}

impl Summary {
    /// Of the values of all runs, which are independent of each other; Student's t with one degree of freedom
    /// less than runs. `None` without values.
    ///
    /// ```
    /// use flashweir_lab::scenario::Summary;
    /// let summary = Summary::of(&[9.0, 10.0, 11.0]).unwrap();
    /// assert_eq!(summary.mean, 10.0);
    /// // 4.303 · 1 / √3
    /// assert!((summary.half_width.unwrap() - 2.484).abs() < 0.001);
    /// ```
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count;
        let half_width = (values.len() > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
            student_t(values.len() - 1) * (squares / (count - 1.0) / count).sqrt()
        });
        Some(Self { mean, half_width })
    }
}

/// The 97.5 % quantile of Student's t distribution, from above within 1 %: beyond the table the next smaller
/// number of degrees of freedom stands for what follows it.
fn student_t(degrees: usize) -> f64 {
    const FIRST: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    const LATER: [(usize, f64); 7] =
        [(100, 1.984), (60, 2.000), (40, 2.021), (30, 2.042), (20, 2.086), (15, 2.131), (12, 2.179)];
    match degrees.checked_sub(1).and_then(|place| FIRST.get(place)) {
        Some(t) => *t,
        None if degrees == 11 => 2.201,
        None => LATER.iter().find(|(from, _)| degrees >= *from).map_or(FIRST[0], |(_, t)| *t),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_has_no_interval_and_none_has_no_mean() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[3.0]), Some(Summary { mean: 3.0, half_width: None }));
        assert_eq!(Summary::of(&[3.0; 50]).unwrap().half_width, Some(0.0));
    }

    #[test]
    fn t_falls_with_the_degrees_of_freedom() {
        let values: Vec<f64> = (1..500).map(student_t).collect();
        assert!(values.is_sorted_by(|one, next| one >= next));
        assert_eq!(
            (values[0], values[9], values[10], values[11], values[498]),
            (12.706, 2.228, 2.201, 2.179, 1.984)
        );
    }
}
