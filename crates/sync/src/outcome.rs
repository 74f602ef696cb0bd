use std::time::Duration;

use steelyard_work::{Position, Report, Times};

use crate::Packet;

/// What one thread did before the stop flag was set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Share {
    /// Packets finished.
    pub packets: u64,
    /// Rounds of the fingerprint of these packets.
    pub iterations: u64,
    /// Sum of their fingerprints, modulo 2^64.
    pub checksum: u64,
    /// Packets finished by source.
    pub by_source: Vec<u64>,
    /// Time without a packet: from a look that found none to the next packet, or to the end.
    pub idle: Duration,
}

impl Share {
    /// Nothing done yet.
    #[must_use]
    pub fn new(sources: usize) -> Self {
        Self { by_source: vec![0; sources], ..Self::default() }
    }

    /// Counts a finished packet.
    ///
    /// # Panics
    ///
    /// If there is no such source.
    #[inline]
    pub fn count(&mut self, source: usize, packet: Packet, fingerprint: u64) {
        self.packets += 1;
        self.iterations += u64::from(packet.iterations);
        self.checksum = self.checksum.wrapping_add(fingerprint);
        self.by_source[source] += 1;
    }
}

/// What a run did.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// One share per worker; the serial program has one.
    pub shares: Vec<Share>,
    /// Packets handed to queues.
    pub dispatched: u64,
    /// Times the dispatcher met a full queue.
    pub full_waits: u64,
    /// Time the dispatcher had a packet and no room for it; nothing without a dispatcher.
    pub dispatcher_idle: Option<Duration>,
    /// Length of the measured interval.
    pub times: Times,
    /// Mean work of each source [iterations].
    pub source_means: Vec<f64>,
}

impl Outcome {
    /// Packets finished before the stop flag.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.shares.iter().map(|share| share.packets).sum()
    }

    /// Sum of all fingerprints, modulo 2^64.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        self.shares.iter().fold(0, |sum, share| sum.wrapping_add(share.checksum))
    }

    /// Adds everything to the report; the index of a worker or source stands for the iteration.
    pub fn report(&self, report: &mut Report) {
        let at =
            |index: usize| Position { iteration: u32::try_from(index).unwrap_or(u32::MAX), phase: "measure" };
        report.add("packets", self.packets(), "count", at(0));
        report.add("wall", self.times.wall_ns, "ns", at(0));
        report.add("cpu", self.times.cpu_ns, "ns", at(0));
        report.add("dispatched", self.dispatched, "count", at(0));
        report.add("full_waits", self.full_waits, "count", at(0));
        for (worker, share) in self.shares.iter().enumerate() {
            report.add("worker_packets", share.packets, "count", at(worker));
            report.add("worker_iterations", share.iterations, "count", at(worker));
        }
        if let Some(idle) = self.dispatcher_idle {
            report.add("dispatcher_idle", whole_ns(idle), "ns", at(0));
            for (worker, share) in self.shares.iter().enumerate() {
                report.add("worker_idle", whole_ns(share.idle), "ns", at(worker));
            }
        }
        for (source, mean) in self.source_means.iter().enumerate() {
            let finished = self.shares.iter().map(|share| share.by_source[source]).sum();
            report.add("source_packets", finished, "count", at(source));
            // A mean that was shifted below zero stands for packets without work.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "means are whole numbers; the cast saturates at 0"
            )]
            let mean = *mean as u64;
            report.add("source_mean", mean, "count", at(source));
        }
    }
}

/// A length in whole nanoseconds, as far as they can be counted: 584 years.
fn whole_ns(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
