//! Median and spread over the rounds.

use crate::trials::comparison::Range;

/// Of an even number of values the upper middle.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// `median [least–most]`, or a dash.
pub(crate) fn cell(values: &[f64]) -> String {
    let Some(median) = median(values.to_vec()) else { return "–".to_owned() };
    let Range { least, most } = Range::of(values);
    format!("{median:.3} [{least:.3}–{most:.3}]")
}
