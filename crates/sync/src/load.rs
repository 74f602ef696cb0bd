use crate::{Distribution, Sources};

/// What a run processes and when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Sources, 1 to 255: the seed byte of a source is its index plus one.
    pub sources: u32,
    /// Mean work of a packet [iterations].
    pub mean: u32,
    /// How work is distributed.
    pub distribution: Distribution,
    /// Number of the trial, which seeds the streams.
    pub trial: u64,
    /// When the run ends.
    pub end: End,
}

/// When a run ends, and what it prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// After a time [ms]; it prints the packets finished until then.
    After(u64),
    /// After a number of packets from each source; it prints the sum of all fingerprints.
    Packets(u64),
}

impl Load {
    /// The sources, before their first packet.
    #[must_use]
    pub fn open(&self) -> Sources {
        Sources::new(self.sources, self.mean, self.distribution, self.trial)
    }

    /// Packets to dispatch until the run ends, if their number is fixed.
    #[must_use]
    pub const fn packet_limit(&self) -> Option<u64> {
        match self.end {
            End::After(_) => None,
            End::Packets(each) => Some(each * self.sources as u64),
        }
    }
}
