//! Pure estimators: transfer rates, averages, quantiles and heavy hitters.
