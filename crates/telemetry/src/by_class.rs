//! Figures by the names of a service and a class.
//!
//! The names come from the configuration, never from anything a client sent, and there are at most
//! [`CLASS_SLOTS`] pairs of them: a pair keeps its slot for as long as the process lives, over all reloads,
//! and once they are used up the rest shares the last, `(other)`: no name in a configuration has brackets.

use std::sync::{Mutex, MutexGuard, PoisonError};

use flashweir_core::limits::CLASS_SLOTS;

/// The labels of such figures.
pub(crate) const CLASS: &[&str] = &["service", "class"];

/// Figures of every class there has been.
#[derive(Debug, Default)]
pub(crate) struct ByClass<T>(Mutex<Vec<OfClass<T>>>);

/// The figures of one class.
#[derive(Clone, Debug)]
pub(crate) struct OfClass<T> {
    service: String,
    class: String,
    pub(crate) figures: T,
}

impl<T: Clone + Default> ByClass<T> {
    /// The slot of these names, which may be new.
    pub(crate) fn slot(&self, service: &str, class: &str) -> u8 {
        const { assert!(CLASS_SLOTS <= u8::MAX as usize + 1) };
        let mut known = self.lock();
        let place = known.iter().position(|known| known.service == service && known.class == class);
        let place = place.unwrap_or_else(|| {
            if known.len() < CLASS_SLOTS {
                let (service, class) =
                    if known.len() < CLASS_SLOTS - 1 { (service, class) } else { (OTHER, OTHER) };
                let (service, class) = (service.to_owned(), class.to_owned());
                known.push(OfClass { service, class, figures: T::default() });
            }
            known.len() - 1
        });
        place as u8
    }

    /// Changes the figures in a slot.
    pub(crate) fn change(&self, slot: u8, change: impl FnOnce(&mut T)) {
        if let Some(known) = self.lock().get_mut(usize::from(slot)) {
            change(&mut known.figures);
        }
    }

    /// All of them, in the order of their slots.
    pub(crate) fn known(&self) -> Vec<OfClass<T>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OfClass<T>>> {
        // Figures are changed one by one: a writer that panicked leaves some that are older.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> OfClass<T> {
    /// The values of [`CLASS`].
    pub(crate) fn labels(&self) -> Vec<String> {
        vec![self.service.clone(), self.class.clone()]
    }

    /// These, and that of one label more.
    pub(crate) fn labels_and(&self, last: &str) -> Vec<String> {
        vec![self.service.clone(), self.class.clone(), last.to_owned()]
    }
}

/// Common name of the classes beyond [`CLASS_SLOTS`].
const OTHER: &str = "(other)";
