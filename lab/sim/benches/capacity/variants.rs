//! Variants of what the sentry learns by: each rule left out, and each number halved and doubled.

use flashweir_admission::sentry::{Constants, Learning, Numbers, Rules};

/// One variant, and its name in tables.
pub(crate) type Variant = (String, Learning);

/// As shipped, and without each rule.
pub(crate) fn ablation() -> Vec<Variant> {
    let without = Rules::NAMES.map(|name| {
        let rules = Rules::without(name).expect("a name of the list");
        (format!("without `{name}`"), Learning { rules, ..Learning::SHIPPED })
    });
    core::iter::once(shipped()).chain(without).collect()
}

/// As shipped, and with each number of the model of the origin halved and doubled.
pub(crate) fn of_constants() -> Vec<Variant> {
    halved_and_doubled(Constants::NAMES, |learning, name| learning.constants.by_name(name))
}

/// As shipped, and with each number of the evidence of calm halved and doubled.
pub(crate) fn of_numbers() -> Vec<Variant> {
    halved_and_doubled(Numbers::NAMES, |learning, name| learning.numbers.by_name(name))
}

fn shipped() -> Variant {
    ("as shipped".to_owned(), Learning::SHIPPED)
}

fn halved_and_doubled(
    names: &[&str],
    number: impl for<'a> Fn(&'a mut Learning, &str) -> Option<&'a mut f64>,
) -> Vec<Variant> {
    let mut variants = vec![shipped()];
    for name in names {
        for factor in [0.5, 2.0] {
            let mut learning = Learning::SHIPPED;
            let value = number(&mut learning, name).expect("a name of the list");
            *value *= factor;
            variants.push((format!("`{name}` {:.4}", *value), learning));
        }
    }
    variants
}
