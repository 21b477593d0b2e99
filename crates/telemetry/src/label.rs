//! Every label value that is not a shed reason: closed enums, so that the number of series is bounded.

use flashweir_admission::flash_crowd::Rule;
use flashweir_core::Reason;

/// An enum whose variants are the values of one label.
pub trait Label: Copy + 'static {
    /// The label's name in the metrics.
    const NAME: &'static str;
    /// Every value, in the order of [`index`](Self::index).
    const ALL: &'static [Self];

    /// This value's place in [`ALL`](Self::ALL).
    fn index(self) -> usize;
    /// This value's one spelling.
    fn as_str(self) -> &'static str;
}

/// Enums whose variants are the values of one label each.
macro_rules! labels {
    ($(
        $(#[$about:meta])*
        $type:ident, $label:literal { $($(#[$variant_about:meta])* $variant:ident => $name:literal,)+ }
    )+) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type { $($(#[$variant_about])* $variant,)+ }

        impl $crate::label::Label for $type {
            const NAME: &'static str = $label;
            const ALL: &'static [Self] = &[$(Self::$variant,)+];

            fn index(self) -> usize {
                self as usize
            }

            fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    )+};
}

pub(crate) use labels;

impl Label for Reason {
    const NAME: &'static str = "reason";
    const ALL: &'static [Self] = &Self::ALL;

    fn index(self) -> usize {
        self as usize
    }

    fn as_str(self) -> &'static str {
        self.as_str()
    }
}

impl Label for Rule {
    const NAME: &'static str = "rule";
    const ALL: &'static [Self] = Self::ALL;

    fn index(self) -> usize {
        self as usize
    }

    fn as_str(self) -> &'static str {
        self.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<L: Label + PartialEq + core::fmt::Debug>() {
        for (index, label) in L::ALL.iter().enumerate() {
            assert_eq!(label.index(), index, "{label:?}");
            let name = label.as_str();
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
                "{name}"
            );
            assert_eq!(L::ALL.iter().filter(|other| other.as_str() == name).count(), 1, "{name}");
        }
    }

    #[test]
    fn every_label_has_its_place_and_its_own_plain_name() {
        check::<crate::Bound>();
        check::<Reason>();
        check::<Rule>();
        check::<crate::Happening>();
    }
}
