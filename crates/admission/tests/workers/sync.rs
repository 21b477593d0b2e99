//! Loom's atomics, as the gates use atomics.
//!
//! Loom takes a sequentially consistent access for one that acquires and releases, and knows one total order
//! of fences only. With such a fence before and after each access the accesses are in one order as well. The
//! models therefore find accesses in a wrong order or too few of them; they do not find one access among
//! these that is not sequentially consistent.

pub(crate) use core::sync::atomic::Ordering;
use loom::sync::atomic::{self, fence};

macro_rules! in_order {
    ($($name:ident: $value:ty),+) => {$(
        #[derive(Debug, Default)]
        pub(crate) struct $name(atomic::$name);

        impl $name {
            pub(crate) fn new(value: $value) -> Self {
                Self(atomic::$name::new(value))
            }

            pub(crate) fn load(&self, order: Ordering) -> $value {
                fenced(order, || self.0.load(order))
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                fenced(order, || self.0.store(value, order));
            }

            pub(crate) fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                fenced(order, || self.0.fetch_sub(value, order))
            }

            pub(crate) fn fetch_update(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                update: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                fenced(set_order, || self.0.fetch_update(set_order, fetch_order, update))
            }
        }
    )+};
}

in_order!(AtomicU32: u32, AtomicU64: u64, AtomicUsize: usize);

#[derive(Debug, Default)]
pub(crate) struct AtomicBool(atomic::AtomicBool);

impl AtomicBool {
    pub(crate) fn load(&self, order: Ordering) -> bool {
        fenced(order, || self.0.load(order))
    }

    pub(crate) fn store(&self, value: bool, order: Ordering) {
        fenced(order, || self.0.store(value, order));
    }

    pub(crate) fn swap(&self, value: bool, order: Ordering) -> bool {
        fenced(order, || self.0.swap(value, order))
    }
}

fn fenced<T>(order: Ordering, access: impl FnOnce() -> T) -> T {
    if order == Ordering::SeqCst {
        fence(order);
    }
    let value = access();
    if order == Ordering::SeqCst {
        fence(order);
    }
    value
}
