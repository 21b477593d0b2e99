//! Goal: a histogram's stated bounds hold for any values. Method: random values against the sorted list.

use crate::measure::Histogram;
use crate::measure::histogram::{Recorder, Sparse, VALUE_MAX};
use proptest::collection::vec;
use proptest::prelude::*;

/// Values of every magnitude, some beyond the top.
fn value() -> impl Strategy<Value = u64> {
    (0u32..36, any::<u64>()).prop_map(|(bits, random)| random & ((1 << bits) - 1))
}

fn recorded(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|&value| histogram.record(value));
    histogram
}

proptest! {
    #[test]
    fn a_quantile_is_within_its_error_of_the_sorted_list(values in vec(value(), 1..400), share in 0.0f64..=1.0) {
        let mut sorted: Vec<u64> = values.iter().map(|&value| value.min(VALUE_MAX)).collect();
        sorted.sort_unstable();
        let rank = ((share * values.len() as f64 - 1e-6).ceil() as usize).clamp(1, values.len());
        let exact = sorted[rank - 1];
        let got = recorded(&values).quantile(share).unwrap();
        prop_assert!(got.abs_diff(exact) * 32 <= exact, "{got} instead of {exact}");
    }

    #[test]
    fn quantiles_never_fall(values in vec(value(), 1..100), mut shares in vec(-0.1f64..1.1, 2..20)) {
        shares.sort_by(f64::total_cmp);
        let histogram = recorded(&values);
        let quantiles: Vec<u64> = shares.iter().map(|&share| histogram.quantile(share).unwrap()).collect();
        prop_assert!(quantiles.is_sorted(), "{quantiles:?}");
        let (low, high) = (histogram.lowest().unwrap().low, histogram.highest().unwrap().high);
        prop_assert!(quantiles.iter().all(|value| (low..high).contains(value)));
    }

    #[test]
    fn merging_parts_in_any_order_is_recording_everything(
        parts in vec(vec(value(), 0..60), 0..6), rotation in 0usize..6
    ) {
        let whole = recorded(&parts.concat());
        let (mut dense, mut through_sparse) = (Histogram::new(), Histogram::new());
        for part in parts.iter().cycle().skip(rotation).take(parts.len()) {
            dense.add(&recorded(part));
            Sparse::from_dense(&recorded(part)).add_to(&mut through_sparse);
        }
        prop_assert_eq!(&dense, &whole);
        prop_assert_eq!(&through_sparse, &whole);
    }

    #[test]
    fn what_a_recorder_hands_over_is_what_was_recorded_since_the_last_time(
        parts in vec(vec(value(), 0..60), 1..6), more in vec(value(), 0..60)
    ) {
        let (mut recorder, mut sum) = (Recorder::default(), Histogram::new());
        for part in &parts {
            part.iter().for_each(|&value| recorder.record(value));
            let drained = recorder.drain();
            prop_assert_eq!(&drained, &recorded(part));
            sum.add(&drained);
        }
        prop_assert_eq!(&sum, &recorded(&parts.concat()));
        // It can be added to, and forgets.
        parts[0].iter().for_each(|&value| recorder.record(value));
        let mut drained = recorder.drain();
        more.iter().for_each(|&value| drained.record(value));
        prop_assert_eq!(&drained, &recorded(&[&parts[0][..], &more].concat()));
        drained.clear();
        prop_assert_eq!(drained, Histogram::new());
    }

    #[test]
    fn the_sparse_form_says_the_same(values in vec(value(), 0..200), share in 0.0f64..=1.0) {
        let dense = recorded(&values);
        let sparse = Sparse::from_dense(&dense);
        prop_assert_eq!((sparse.count(), sparse.quantile(share)), (dense.count(), dense.quantile(share)));
        prop_assert!(sparse.buckets().eq(dense.buckets()));
        let read = Sparse::from_pairs(sparse.pairs().map(|(index, count)| (u64::from(index), count)));
        prop_assert_eq!(read, Ok(sparse));
    }
}
