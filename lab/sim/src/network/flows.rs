//! The connections of a network, in slots that are used again.

use super::NetworkError;
use super::connection::Connection;
use super::packet::FlowId;
use super::topology::bounded;
use flashweir_core::limits;

/// About 570 bytes for each flow that exists at once; the memory is kept for later ones.
#[derive(Debug, Default)]
pub(super) struct Flows {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    /// Of the flow that is here, or of the next one.
    generation: u32,
    flow: Option<Connection>,
}

impl Flows {
    /// The id that the next [`Flows::insert`] will give.
    pub(super) fn next_id(&mut self) -> Result<FlowId, NetworkError> {
        if let Some(&slot) = self.free.last() {
            return Ok(FlowId { slot, generation: self.slots[slot as usize].generation });
        }
        bounded(self.slots.len(), "flows at once", limits::SIM_FLOWS)?;
        self.slots.push(Slot { generation: 0, flow: None });
        let slot = self.slots.len() as u32 - 1;
        self.free.push(slot);
        Ok(FlowId { slot, generation: 0 })
    }

    /// Puts a flow where [`Flows::next_id`] said.
    pub(super) fn insert(&mut self, id: FlowId, flow: Connection) {
        let free = self.free.pop();
        // Holds because `next_id` returned the last free slot and nothing came in between.
        assert_eq!(free, Some(id.slot), "a flow was put where its id does not point");
        self.slots[id.slot as usize].flow = Some(flow);
    }

    pub(super) fn get(&self, id: FlowId) -> Option<&Connection> {
        let slot = self.slots.get(id.slot as usize)?;
        if slot.generation == id.generation { slot.flow.as_ref() } else { None }
    }

    pub(super) fn get_mut(&mut self, id: FlowId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        if slot.generation == id.generation { slot.flow.as_mut() } else { None }
    }

    pub(super) fn remove(&mut self, id: FlowId) {
        if self.get(id).is_some() {
            let slot = &mut self.slots[id.slot as usize];
            slot.flow = None;
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(id.slot);
        }
    }

    /// Flows that exist now.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
