//! Random exponential marking at a link; the price is [`flashweir_aqm::rem`].

use crate::network::packet::Packet;
use flashweir_aqm::{Fate, Rem, RemPrice};
use flashweir_core::{Instant, Rng};

#[derive(Debug)]
pub(in crate::network) struct RemState {
    marks: bool,
    price: RemPrice,
}

impl RemState {
    pub(super) fn new(settings: &Rem, rate_bits_per_s: u64) -> Self {
        Self { marks: settings.marks, price: RemPrice::new(settings, rate_bits_per_s) }
    }

    pub(super) fn arrived(&mut self, now: Instant, waiting: usize, packet: &Packet, rng: &mut Rng) -> Fate {
        self.price.advance(now, waiting);
        self.price.count_arrival();
        let marked_later = self.marks && packet.ecn.capable;
        if !marked_later && self.price.strikes(rng) { Fate::Drop } else { Fate::Keep }
    }

    pub(super) fn leaves_marked(
        &mut self,
        now: Instant,
        waiting: usize,
        packet: &Packet,
        rng: &mut Rng,
    ) -> bool {
        // Until it leaves, the packet itself was waiting too.
        self.price.advance(now, waiting + 1);
        self.marks && packet.ecn.capable && self.price.strikes(rng)
    }
}
