//! Fill of the server, over time.

use flashweir_core::Duration;

/// One stretch of the run: integrals over time, which divided by the stretch's length are means, and what was
/// done in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Requests waiting for a worker, times nanoseconds.
    pub waiting_nanos: u64,
    /// Requests in service, times nanoseconds.
    pub in_service_nanos: u64,
    /// Processors at work (on requests or refusals), times nanoseconds.
    pub busy_nanos: u64,
    /// Requests that were served to their end in this stretch, whenever they came.
    pub served: u64,
}

/// The levels of a run, bin after bin from its start on. Everything after the last bin is left out.
#[derive(Debug)]
pub(super) struct Levels {
    bins: Vec<Level>,
    bin_nanos: u64,
    current: usize,
    /// Remainder of the current bin.
    left_nanos: u64,
}

impl Levels {
    pub(super) fn new(bin: Duration, bins: usize) -> Self {
        let bin_nanos = bin.as_nanos() as u64;
        Self { bins: vec![Level::default(); bins], bin_nanos, current: 0, left_nanos: bin_nanos }
    }

    /// Adds these levels (waiting, in service, busy) for the next `nanos` nanoseconds.
    pub(super) fn add(&mut self, mut nanos: u64, [waiting, in_service, busy]: [u64; 3]) {
        while let Some(bin) = self.bins.get_mut(self.current) {
            let here = nanos.min(self.left_nanos);
            bin.waiting_nanos = bin.waiting_nanos.saturating_add(waiting.saturating_mul(here));
            bin.in_service_nanos = bin.in_service_nanos.saturating_add(in_service.saturating_mul(here));
            bin.busy_nanos = bin.busy_nanos.saturating_add(busy.saturating_mul(here));
            nanos -= here;
            self.left_nanos -= here;
            if self.left_nanos > 0 {
                return;
            }
            self.current += 1;
            self.left_nanos = self.bin_nanos;
        }
    }

    /// A request was served to its end, now.
    pub(super) fn serve(&mut self) {
        if let Some(bin) = self.bins.get_mut(self.current) {
            bin.served += 1;
        }
    }

    pub(super) fn into_bins(self) -> Vec<Level> {
        self.bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_split_where_bins_end() {
        let mut levels = Levels::new(Duration::from_nanos(10), 3);
        levels.add(4, [1, 2, 1]);
        levels.add(13, [5, 0, 2]);
        levels.serve();
        levels.add(1_000, [1, 1, 1]);
        let bins = levels.into_bins();
        let all =
            bins.iter().map(|bin| [bin.waiting_nanos, bin.in_service_nanos, bin.busy_nanos, bin.served]);
        assert_eq!(all.collect::<Vec<_>>(), [[34, 8, 16, 0], [38, 3, 17, 1], [10, 10, 10, 0]]);
    }
}
