//! Objects of a kind as a watch reports them.

use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use std::collections::BTreeMap;

/// By name. A list replaces all that is known, once it is whole.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    known: BTreeMap<String, DynamicObject>,
    listed: BTreeMap<String, DynamicObject>,
}

impl Watched {
    /// Takes what a watch says.
    pub(crate) fn take(&mut self, event: Event<DynamicObject>) {
        let named = |object: DynamicObject| (object.metadata.name.clone().unwrap_or_default(), object);
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => self.listed.extend([named(object)]),
            Event::InitDone => self.known = std::mem::take(&mut self.listed),
            Event::Apply(object) => self.known.extend([named(object)]),
            Event::Delete(object) => {
                self.known.remove(&named(object).0);
            }
        }
    }

    /// All objects.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &DynamicObject> {
        self.known.values()
    }
}
