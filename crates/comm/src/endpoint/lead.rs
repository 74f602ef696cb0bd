//! Endpoint 0: decides, begins every operation, keeps the clock probes.

use std::hint::black_box;

use super::Endpoint;
use crate::CommError;
use crate::channel::Channel;
use crate::clock::{now_ns, wait_until_ns};
use crate::plan::{Operation, Step};
use crate::record::ProbeRecord;
use crate::setup::EDGE_PROBES;
use crate::signal;

/// Fewest probes at either edge of a run, on links so slow that all of them would take too long.
const FEWEST_PROBES: u32 = 100;
const LONGEST_PROBING_NS: u64 = 2_000_000_000;

impl<C: Channel> Endpoint<'_, C> {
    /// Executes the plan and says what ended it.
    pub(super) fn lead(&mut self) -> Result<&'static str, CommError> {
        let block = u64::from(self.agreement.block);
        let mut ended_by = "plan";
        let start_ns = now_ns();
        for seq in 0..u32::try_from(self.plan.len()).unwrap_or(u32::MAX) {
            if u64::from(seq).is_multiple_of(block) {
                if seq > 0 && self.budget_ns.is_some_and(|budget_ns| now_ns() - start_ns > budget_ns) {
                    ended_by = "budget";
                    break;
                }
                self.lead_block(true)?;
            }
            signal::check()?;
            if self.gap_ns > 0 {
                wait_until_ns(now_ns() + self.gap_ns);
            }
            let step = self.plan.steps()[seq as usize];
            let stamps = self.lead_step(step)?;
            self.records.finish_operation(seq, step, stamps);
            self.done = u64::from(seq) + 1;
        }
        self.lead_block(false)?;
        self.compare()?;
        Ok(ended_by)
    }

    #[inline]
    fn lead_step(&mut self, step: Step) -> Result<[u64; 3], CommError> {
        let size = step.size as usize;
        match step.operation {
            Operation::PingPong => {
                let start_ns = now_ns();
                self.plant.pay(step.size);
                self.channel.send(&mut self.message, size)?;
                let mid_ns = now_ns();
                self.channel.receive(&mut self.message, size)?;
                Ok([start_ns, mid_ns, now_ns()])
            }
            Operation::Send => {
                self.channel.receive(&mut self.control, 0)?;
                Self::settle();
                self.send_one(step)
            }
            Operation::Stream | Operation::Receive => self.send_one(step),
            Operation::SendLater => {
                let start_ns = now_ns();
                self.plant.pay(step.size);
                let done = self.channel.begin_send(&mut self.message, size)?;
                let mid_ns = now_ns();
                self.channel.finish_send(&mut self.message, size, done)?;
                Ok([start_ns, mid_ns, now_ns()])
            }
            Operation::Test => {
                let start_ns = now_ns();
                black_box(self.channel.is_free()?);
                Ok([start_ns, 0, now_ns()])
            }
            Operation::Probe => {
                let start_ns = now_ns();
                black_box(self.channel.has_arrived()?);
                Ok([start_ns, 0, now_ns()])
            }
            Operation::Time => {
                let start_ns = now_ns();
                black_box(now_ns());
                Ok([start_ns, 0, now_ns()])
            }
        }
    }

    #[inline]
    fn send_one(&mut self, step: Step) -> Result<[u64; 3], CommError> {
        let start_ns = now_ns();
        self.plant.pay(step.size);
        self.channel.send(&mut self.message, step.size as usize)?;
        Ok([start_ns, 0, now_ns()])
    }

    /// Between two blocks: says whether to go on, times the cache line, probes the clocks.
    fn lead_block(&mut self, goes_on: bool) -> Result<(), CommError> {
        let base = self.canary.as_ref().map_or(0, crate::canary::Canary::begin);
        let is_edge = self.done == 0 || !goes_on;
        let probes = if is_edge { EDGE_PROBES } else { self.agreement.probes };
        self.control.set_words(&[u64::from(goes_on), u64::from(probes > 0), base]);
        self.channel.send(&mut self.control, 24)?;
        let canary_ns = self.canary.as_ref().and_then(|canary| canary.ping_ns(base));
        signal::check()?;
        self.lead_probes(probes)?;
        self.add_block(canary_ns);
        Ok(())
    }

    fn lead_probes(&mut self, count: u32) -> Result<(), CommError> {
        let begin_ns = now_ns();
        for index in 0..count {
            let send0_ns = now_ns();
            let is_slow = index + 1 >= FEWEST_PROBES && send0_ns - begin_ns > LONGEST_PROBING_NS;
            let is_last = is_slow || index + 1 == count;
            self.control.set_words(&[u64::from(is_last)]);
            self.channel.send(&mut self.control, 8)?;
            self.channel.receive(&mut self.control, 8)?;
            let recv0_ns = now_ns();
            let [time1_ns] = self.control.words();
            let seq = u32::try_from(self.done).unwrap_or(u32::MAX);
            self.records.add_probe(ProbeRecord { seq, unused: 0, send0_ns, time1_ns, recv0_ns });
            if is_last {
                break;
            }
            signal::check()?;
        }
        Ok(())
    }

    /// Makes sure that endpoint 1 has done the same.
    fn compare(&mut self) -> Result<(), CommError> {
        self.channel.receive(&mut self.control, 16)?;
        let [done, checksum] = self.control.words();
        let is_same = done == self.done && checksum == self.plan.checksum(self.done);
        self.control.set_words(&[u64::from(is_same)]);
        self.channel.send(&mut self.control, 8)?;
        if is_same {
            return Ok(());
        }
        Err(CommError::Disagreement(format!(
            "endpoint 0 did {} operations, endpoint 1 {done}, or others",
            self.done
        )))
    }
}
