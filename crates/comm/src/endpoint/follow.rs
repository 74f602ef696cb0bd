//! Endpoint 1: does what endpoint 0 begins, and answers its probes.

use super::Endpoint;
use crate::CommError;
use crate::channel::Channel;
use crate::clock::now_ns;
use crate::plan::{Operation, Step};
use crate::signal;

impl<C: Channel> Endpoint<'_, C> {
    /// Executes the plan until endpoint 0 says that it is over.
    pub(super) fn follow(&mut self) -> Result<&'static str, CommError> {
        let block = u64::from(self.agreement.block);
        let mut goes_on = true;
        for seq in 0..u32::try_from(self.plan.len()).unwrap_or(u32::MAX) {
            if u64::from(seq).is_multiple_of(block) {
                goes_on = self.follow_block()?;
                if !goes_on {
                    break;
                }
            }
            signal::check()?;
            let step = self.plan.steps()[seq as usize];
            if let Some(stamps) = self.follow_step(step)? {
                self.records.finish_operation(seq, step, stamps);
            }
            self.done = u64::from(seq) + 1;
        }
        if goes_on && self.follow_block()? {
            return Err(CommError::Disagreement("endpoint 0 has a longer plan".to_owned()));
        }
        self.control.set_words(&[self.done, self.plan.checksum(self.done)]);
        self.channel.send(&mut self.control, 16)?;
        self.channel.receive(&mut self.control, 8)?;
        match self.control.words() {
            [1] if goes_on => Ok("plan"),
            [1] => Ok("budget"),
            _ => Err(CommError::Disagreement("endpoint 0 did other operations".to_owned())),
        }
    }

    #[inline]
    fn follow_step(&mut self, step: Step) -> Result<Option<[u64; 3]>, CommError> {
        let size = step.size as usize;
        match step.operation {
            Operation::PingPong => {
                let start_ns = now_ns();
                self.channel.receive(&mut self.message, size)?;
                let mid_ns = now_ns();
                self.plant.pay(step.size);
                self.channel.send(&mut self.message, size)?;
                return Ok(Some([start_ns, mid_ns, now_ns()]));
            }
            Operation::Send => self.channel.send(&mut self.control, 0)?,
            Operation::Receive => self.wait_for_whole_message()?,
            Operation::Stream | Operation::SendLater => {}
            Operation::Test | Operation::Probe | Operation::Time => return Ok(None),
        }
        let start_ns = now_ns();
        self.channel.receive(&mut self.message, size)?;
        Ok(Some([start_ns, 0, now_ns()]))
    }

    /// Waits until the message has arrived, or as much of it as the transport holds.
    fn wait_for_whole_message(&mut self) -> Result<(), CommError> {
        self.channel.wait_for_arrival()?;
        let mut before = 0;
        loop {
            let arrived = self.channel.arrived()?;
            // Nothing at all has arrived when the other endpoint is gone; receiving says so.
            if arrived == before {
                return Ok(());
            }
            before = arrived;
            signal::check()?;
            Self::settle();
        }
    }

    fn follow_block(&mut self) -> Result<bool, CommError> {
        self.channel.receive(&mut self.control, 24)?;
        let [goes_on, has_probes, base] = self.control.words();
        if let Some(canary) = &self.canary {
            canary.pong(base);
        }
        if has_probes != 0 {
            self.answer_probes()?;
        }
        self.add_block(None);
        Ok(goes_on != 0)
    }

    fn answer_probes(&mut self) -> Result<(), CommError> {
        loop {
            self.channel.receive(&mut self.control, 8)?;
            let time1_ns = now_ns();
            let [is_last] = self.control.words();
            self.control.set_words(&[time1_ns]);
            self.channel.send(&mut self.control, 8)?;
            if is_last != 0 {
                return Ok(());
            }
            signal::check()?;
        }
    }
}
