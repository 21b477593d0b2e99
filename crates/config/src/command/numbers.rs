//! Numbers as people write them on the command line.

/// Reads a finite number above zero.
///
/// # Errors
/// Anything else, in words for the user.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err("expected a number above zero".to_owned()),
    }
}

/// Reads a number and checks that it lies in a range.
pub fn within(low: f64, high: f64) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| match text.parse::<f64>() {
        Ok(value) if (low..=high).contains(&value) => Ok(value),
        _ => Err(format!("expected a number from {low} to {high}")),
    }
}
