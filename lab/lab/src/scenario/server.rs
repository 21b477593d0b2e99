//! The server, from the file.

use crate::scenario::file::{DepartedKind, OverflowKind, ServerFile, ServerKind};
use crate::scenario::problem::{Problem, within, wrong};
use flashweir_core::limits::SIM_PROCESSORS;
use flashweir_sim::request::{Departed, Discipline, Memory, Overflow, ServerModel};

impl ServerFile {
    /// The server.
    pub(crate) fn model(&self) -> Result<ServerModel, Problem> {
        if self.processors.get() > SIM_PROCESSORS {
            return wrong("server.processors", format!("{} are more than {SIM_PROCESSORS}", self.processors));
        }
        let cost = self.refusal_cost.0.0;
        if self.overflow == OverflowKind::Drop && !cost.is_zero() {
            return wrong("server.refusal_cost", "goes with overflow = \"refuse\": dropping costs nothing");
        }
        let memory = self.memory.as_ref().map(|memory| {
            if memory.memory_mib == 0 {
                return wrong("server.memory.memory_mib", "a machine without memory: expected more than 0");
            }
            Ok(Memory {
                memory_bytes: memory.memory_mib.saturating_mul(1 << 20),
                base_bytes: memory.base_mib.saturating_mul(1 << 20),
                request_bytes: memory.request_kib.saturating_mul(1 << 10),
                penalty: within("server.memory.penalty", memory.penalty, 0.0, 100_000.0)?,
            })
        });
        Ok(ServerModel {
            discipline: match self.kind {
                ServerKind::FirstCome => Discipline::FirstCome,
                ServerKind::Shared => Discipline::Shared,
            },
            processors: self.processors,
            // Without a number, first come first served has a worker for each processor.
            workers: self.workers.or((self.kind == ServerKind::FirstCome).then_some(self.processors)),
            queue: self.queue,
            overflow: match self.overflow {
                OverflowKind::Drop => Overflow::Drop,
                OverflowKind::Refuse => Overflow::Refuse { cost },
            },
            memory: memory.transpose()?,
            contention: 0.0,
            departed: match self.departed {
                DepartedKind::Stops => Departed::Stops,
                DepartedKind::WorksOn => Departed::WorksOn,
            },
        })
    }
}
