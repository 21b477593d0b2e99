//! Priority of each class of each service under a ceiling: the credit that it may take.
//!
//! The ceiling is one for all services, and revenue says what a request of any of them is worth. So the
//! classes are ranked all together, in equal steps from the least revenue to the most; where all are worth
//! the same no class has credit.

use flashweir_admission::flash_crowd::CeilingPriority;
use flashweir_config::Class;

/// Priorities of the classes of every service, in the order they come in.
pub(super) fn ceiling_priorities<'a>(
    services: impl Iterator<Item = &'a [Class]> + Clone,
) -> Vec<Vec<CeilingPriority>> {
    let worth =
        |classes: &'a [Class]| classes.iter().filter(|class| !class.exempt).map(|class| class.revenue);
    let mut steps: Vec<f64> = services.clone().flat_map(worth).collect();
    steps.sort_by(f64::total_cmp);
    steps.dedup();
    let most = steps.len().saturating_sub(1).max(1);
    let ceiling_priority = |class: &Class| {
        if class.exempt {
            return CeilingPriority::Exempt;
        }
        let step = steps.partition_point(|&revenue| revenue < class.revenue);
        // At most 1,000.
        CeilingPriority::Credit { milli: (1_000 * step / most) as u16 }
    };
    services.map(|classes| classes.iter().map(ceiling_priority).collect()).collect()
}
