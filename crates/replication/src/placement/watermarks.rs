//! Detection of overloaded servers: two thresholds with hysteresis.

use crate::SettingsError;

/// The load at which a server counts as overloaded, and that below which it no longer does; requests per
/// second of a server of weight one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watermarks {
    /// HW in Esser §2.2: default 300, of a server that saturates at 350 (§4.2.2). Higher: overload is found
    /// later.
    pub high_rps: f64,
    /// LW: default 200. Nearer to HW: more changes of state; lower: the published offload moves more.
    pub low_rps: f64,
}

impl Default for Watermarks {
    fn default() -> Self {
        Self { high_rps: 300.0, low_rps: 200.0 }
    }
}

impl Watermarks {
    /// # Errors
    /// [`SettingsError`] unless 0 < low < high, both finite.
    pub fn check(&self) -> Result<(), SettingsError> {
        let is_valid = 0.0 < self.low_rps && self.low_rps < self.high_rps && self.high_rps.is_finite();
        is_valid.then_some(()).ok_or(SettingsError::new("watermarks", "0 < low < high"))
    }
}

/// Overloaded from the high watermark on, until the load is below the low one.
///
/// ```
/// use flashweir_replication::placement::{Overload, Watermarks};
/// let mut overload = Overload::default();
/// let states = [299.0, 300.0, 200.0, 199.0, 250.0].map(|load| overload.update(load, &Watermarks::default()));
/// assert_eq!(states, [false, true, true, false, false]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overload(bool);

impl Overload {
    /// Takes a load over the server's weight, requests per second, and says whether the server is overloaded.
    pub fn update(&mut self, load_rps: f64, watermarks: &Watermarks) -> bool {
        self.0 = load_rps >= watermarks.high_rps || self.0 && load_rps >= watermarks.low_rps;
        self.0
    }

    /// Returns whether it was overloaded at the last update.
    #[must_use]
    pub fn is_overloaded(self) -> bool {
        self.0
    }
}
