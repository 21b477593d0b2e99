//! Lanes of service time: how finely service times are distinguished where they are counted and compared.

/// Service times that are distinguished: 1 ms · 1.5ʲ, up to 292 ms, and more.
pub const SERVICE_TIMES: usize = 16;

/// Ends of the lanes of service time, microseconds: 1 ms · 1.5ʲ; what is longer is in one more.
pub(super) const LANES_END_US: [u32; SERVICE_TIMES - 1] = {
    let mut ends = [1_000; SERVICE_TIMES - 1];
    let mut lane = 1;
    while lane < ends.len() {
        ends[lane] = ends[lane - 1] + ends[lane - 1] / 2;
        lane += 1;
    }
    ends
};

/// The lane of a service time: 1 ms and less, and from there steps of a half more.
pub(super) fn lane_of_cost(cost_us: u32) -> usize {
    LANES_END_US.partition_point(|&end_us| end_us < cost_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_grow_by_half_and_the_last_is_open() {
        let lanes = [0, 1_000, 1_001, 1_500, 1_501, 291_871, 291_872, u32::MAX].map(lane_of_cost);
        assert_eq!((lanes, LANES_END_US[14]), ([0, 0, 1, 1, 2, 14, 15, 15], 291_871));
    }
}
