use super::{Draws, Packet};

/// Seeds of packets are below this.
const SEED_BOUND: u32 = 100_000_001;

/// How the work of packets is distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// Uniform from 0 to twice the mean, the same for every source.
    Uniform,
    /// Exponential; each source has a mean of its own, drawn by [`source_means`].
    Exponential,
}

/// The sources of a run, dealt from in turn.
#[derive(Debug, Clone)]
pub struct Sources {
    streams: Vec<Stream>,
    distribution: Distribution,
    bound: u32,
}

#[derive(Debug, Clone)]
struct Stream {
    sizes: Draws,
    seeds: Draws,
    mean: f64,
}

impl Sources {
    /// `count` sources of mean work `mean`; `trial` is how far the streams of packet seeds and of
    /// source means are advanced.
    #[must_use]
    pub fn new(count: u32, mean: u32, distribution: Distribution, trial: u64) -> Self {
        let means = match distribution {
            Distribution::Uniform => vec![i64::from(mean); count as usize],
            Distribution::Exponential => source_means(mean, count, trial),
        };
        let streams = means.into_iter().zip(0_u32..).map(|(mean, index)| {
            let byte = seed_byte(index);
            let mut seeds = Draws::new(byte);
            seeds.advance(trial);
            #[expect(clippy::cast_precision_loss, reason = "means are far below 2^53")]
            let mean = mean as f64;
            Stream { sizes: Draws::new(byte), seeds, mean }
        });
        Self { streams: streams.collect(), distribution, bound: mean.saturating_mul(2).saturating_add(1) }
    }

    /// How many sources there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.streams.len()
    }

    /// Mean work of each source [iterations].
    #[must_use]
    pub fn means(&self) -> Vec<f64> {
        self.streams.iter().map(|stream| stream.mean).collect()
    }

    /// The next packet of one source.
    ///
    /// # Panics
    ///
    /// If there is no such source.
    #[inline]
    pub fn next_packet(&mut self, source: usize) -> Packet {
        let Stream { sizes, seeds, mean } = &mut self.streams[source];
        let iterations = match self.distribution {
            Distribution::Uniform => sizes.next_below(self.bound),
            Distribution::Exponential => sizes.next_exponential(*mean),
        };
        Packet { iterations, seed: seeds.next_below(SEED_BOUND) }
    }
}

/// Seed byte of a source: its index plus one, as a C program keeps it in a byte.
fn seed_byte(source: u32) -> u8 {
    (source + 1).to_le_bytes()[0]
}

/// Mean work of each source under exponential load [iterations].
///
/// A stream with seed byte 1 is advanced `trial` times; `count` exponential draws of mean `mean`
/// are then shifted by one integer, so that their average is `mean` up to its rounding. A mean can
/// be negative when it is shifted down; such a source sends packets without work.
///
/// ```
/// assert_eq!(steelyard_sync::source_means(1000, 2, 1), [813, 1186]);
/// ```
#[must_use]
pub fn source_means(mean: u32, count: u32, trial: u64) -> Vec<i64> {
    let mut draws = Draws::new(1);
    draws.advance(trial);
    let values: Vec<i64> = (0..count).map(|_| i64::from(draws.next_exponential(f64::from(mean)))).collect();
    let excess = values.iter().sum::<i64>() - i64::from(mean) * i64::from(count);
    // Integer division truncates towards zero here as in C.
    let shift = excess.checked_div(i64::from(count)).unwrap_or(0);
    values.into_iter().map(|value| value - shift).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_golden_source_mean_is_met() {
        let table = include_str!("../../tests/golden/exponential-source-means.csv");
        let mut cells: BTreeMap<(u32, u32, u64), Vec<i64>> = BTreeMap::new();
        for line in table.lines().skip(1) {
            let fields: Vec<i64> = line.trim().split(',').map(|field| field.parse().unwrap()).collect();
            let key =
                (fields[0].try_into().unwrap(), fields[1].try_into().unwrap(), fields[2].unsigned_abs());
            let means = cells.entry(key).or_default();
            assert_eq!(usize::try_from(fields[3]).unwrap(), means.len(), "rows are in order of source");
            means.push(fields[4]);
        }
        assert_eq!(cells.values().map(Vec::len).sum::<usize>(), 132);
        for ((mean, count, trial), means) in cells {
            assert_eq!(source_means(mean, count, trial), means, "W {mean} n {count} s {trial}");
        }
    }

    #[test]
    fn no_source_has_no_means() {
        assert!(source_means(1000, 0, 1).is_empty());
        assert_eq!(Sources::new(0, 5, Distribution::Exponential, 1).count(), 0);
    }

    #[test]
    fn uniform_packets_have_at_most_twice_the_mean() {
        let mut sources = Sources::new(2, 25, Distribution::Uniform, 3);
        let packets: Vec<Packet> = (0..10_000).map(|draw| sources.next_packet(draw % 2)).collect();
        assert!(packets.iter().all(|packet| packet.iterations <= 50 && packet.seed < SEED_BOUND));
        assert!(packets.iter().any(|packet| packet.iterations == 50));
    }
}
