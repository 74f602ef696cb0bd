//! What is drawn as a whole: values, clusters inside strata, or blocks of a series.

use rand_core::Rng;
use rand_pcg::Pcg64;

use crate::error::StatsError;
use crate::sample::check_values;
use crate::stream::stream;

/// What a resample is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme<'a> {
    /// Single values, independent of each other.
    Plain,
    /// Whole clusters (single values without labels of clusters), inside each stratum (one without labels of strata).
    Units {
        /// For each value the number of its cluster, from 0.
        clusters: Option<&'a [usize]>,
        /// For each value the number of its stratum, from 0; all values of a cluster share it.
        strata: Option<&'a [usize]>,
    },
    /// Blocks of this many neighbours of the series, from any place, the end joined to the beginning; the last is cut so that
    /// a resample is as long as the series.
    ///
    /// Source: D. N. Politis, J. P. Romano, "A circular block-resampling procedure for stationary data", 1992: the mean of the
    /// resamples is that of the series, unlike with blocks that stop at the end (Kuensch 1989).
    Blocks(usize),
}

/// Units by stratum; a unit is a list of places in the sorted sample.
pub(crate) type Strata = Vec<Vec<Vec<u32>>>;

/// A sample in ascending order with what is drawn from it.
#[derive(Debug)]
pub(crate) struct Design {
    pub(crate) sorted: Vec<f64>,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Plain,
    Units(Strata),
    /// Place in the sorted sample of each value of the series, and the length of a block.
    Blocks {
        places: Vec<u32>,
        length: usize,
    },
}

impl Design {
    pub(crate) fn new(values: &[f64], scheme: Scheme<'_>) -> Result<Self, StatsError> {
        check_values(values, 1)?;
        match scheme {
            Scheme::Plain => Ok(Self { sorted: crate::sample::sorted(values), kind: Kind::Plain }),
            Scheme::Units { clusters, strata } => Self::of_units(values, clusters, strata),
            Scheme::Blocks(length) => {
                if length == 0 || length > values.len() / 2 {
                    return Err(StatsError::Block { length, count: values.len() });
                }
                let (sorted, places) = order(values, |_| 0);
                Ok(Self { sorted, kind: Kind::Blocks { places, length } })
            }
        }
    }

    fn of_units(
        values: &[f64],
        clusters: Option<&[usize]>,
        strata: Option<&[usize]>,
    ) -> Result<Self, StatsError> {
        let needed = values.len();
        for (name, labels) in [("labels of clusters", clusters), ("labels of strata", strata)] {
            // Numbers beyond the number of values would be gaps, not clusters.
            if let Some(&label) = labels.and_then(|all| all.iter().find(|&&label| label >= needed)) {
                return Err(StatsError::LabelRange { name, label, needed });
            }
            if let Some(found) = labels.map(<[usize]>::len).filter(|&found| found != needed) {
                return Err(StatsError::Labels { name, found, needed });
            }
        }
        let unit_of = |position: usize| clusters.map_or(position, |labels| labels[position]);
        // Equal values are told apart by their labels, so that their order in the input does not matter.
        let tie = |position: usize| {
            (strata.map_or(0, |labels| labels[position]), clusters.map_or(0, |l| l[position]))
        };
        let (sorted, places) = order(values, tie);
        let mut members: Vec<(usize, Vec<u32>)> = Vec::new();
        for (position, &place) in places.iter().enumerate() {
            let (unit, stratum) = (unit_of(position), strata.map_or(0, |labels| labels[position]));
            if members.len() <= unit {
                members.resize(unit + 1, (stratum, Vec::new()));
            }
            let entry = &mut members[unit];
            if entry.1.is_empty() {
                entry.0 = stratum;
            } else if entry.0 != stratum {
                return Err(StatsError::Straddling { cluster: unit });
            }
            entry.1.push(place);
        }
        let mut found: Strata = Vec::new();
        for (stratum, mut unit) in members {
            if found.len() <= stratum {
                found.resize(stratum + 1, Vec::new());
            }
            unit.sort_unstable();
            if !unit.is_empty() {
                found[stratum].push(unit);
            }
        }
        if clusters.is_none() {
            // Units without labels of their own stand in the order of their values.
            for units in &mut found {
                units.sort_unstable();
            }
        }
        found.retain(|units| !units.is_empty());
        match found.iter().position(|units| units.len() < 2) {
            Some(stratum) => Err(StatsError::ThinStratum { stratum, found: found[stratum].len() }),
            None => Ok(Self { sorted, kind: Kind::Units(found) }),
        }
    }

    /// Draws one resample: whole units, as counts over the sorted sample. Gives its size.
    pub(crate) fn count(&self, generator: &mut Pcg64, counts: &mut [u32]) -> usize {
        counts.fill(0);
        let mut total = 0;
        match &self.kind {
            Kind::Plain => {
                total = counts.len();
                for _ in 0..total {
                    counts[below(generator, total)] += 1;
                }
            }
            Kind::Units(strata) => {
                for units in strata {
                    for _ in 0..units.len() {
                        let unit = &units[below(generator, units.len())];
                        for &place in unit {
                            counts[place as usize] += 1;
                        }
                        total += unit.len();
                    }
                }
            }
            Kind::Blocks { places, length } => {
                while total < places.len() {
                    let take = (*length).min(places.len() - total);
                    let start = below(generator, places.len());
                    let circle = places[start..].iter().chain(places);
                    for &place in circle.take(take) {
                        counts[place as usize] += 1;
                    }
                    total += take;
                }
            }
        }
        total
    }

    /// Units whose removal shows how much hangs on each (jackknife): values, clusters by stratum, or neighbouring blocks.
    ///
    /// More than `most` single values are dealt to `most` groups at random, from a stream of their own.
    pub(crate) fn jackknife_units(&self, most: usize, seed: u64, cell: u64) -> Strata {
        match &self.kind {
            Kind::Units(strata) => strata.clone(),
            Kind::Blocks { places, length } => vec![places.chunks(*length).map(<[u32]>::to_vec).collect()],
            Kind::Plain => {
                let end = u32::try_from(self.sorted.len()).unwrap_or(u32::MAX);
                let mut places: Vec<u32> = (0..end).collect();
                if places.len() <= most {
                    return vec![places.into_iter().map(|place| vec![place]).collect()];
                }
                let mut generator = stream(seed, cell, usize::MAX);
                for index in (1..places.len()).rev() {
                    places.swap(index, below(&mut generator, index + 1));
                }
                let size = places.len().div_ceil(most);
                vec![places.chunks(size).map(<[u32]>::to_vec).collect()]
            }
        }
    }
}

/// Values in ascending order and the place of each there; equal values stand in the order of their ties.
fn order<T: Ord>(values: &[f64], tie: impl Fn(usize) -> T) -> (Vec<f64>, Vec<u32>) {
    let mut positions: Vec<usize> = (0..values.len()).collect();
    positions.sort_by(|&a, &b| values[a].total_cmp(&values[b]).then_with(|| tie(a).cmp(&tie(b))));
    let mut places = vec![0_u32; values.len()];
    for (place, &position) in (0_u32..).zip(&positions) {
        places[position] = place;
    }
    (positions.iter().map(|&position| values[position]).collect(), places)
}

/// Uniform index below a bound by multiply-high.
#[expect(clippy::cast_possible_truncation, reason = "the product's upper half is below the bound")]
pub(crate) fn below(generator: &mut Pcg64, bound: usize) -> usize {
    ((u128::from(generator.next_u64()) * bound as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::{Design, Kind, Scheme};
    use crate::error::StatsError;
    use crate::stream::stream;

    const VALUES: [f64; 6] = [5.0, 1.0, 4.0, 2.0, 6.0, 3.0];

    fn drawn(scheme: Scheme<'_>) -> Vec<(Vec<u32>, usize)> {
        let design = Design::new(&VALUES, scheme).unwrap();
        let mut generator = stream(1, 1, 1);
        let mut counts = vec![0; 6];
        (0..200)
            .map(|_| {
                let total = design.count(&mut generator, &mut counts);
                (counts.clone(), total)
            })
            .collect()
    }

    /// Each of 6 values is drawn once per resample on average: 200 expected, standard deviation 13.
    #[test]
    fn single_values_are_drawn_evenly() {
        let found = drawn(Scheme::Plain);
        for place in 0..6 {
            let sum: u32 = found.iter().map(|(counts, _)| counts[place]).sum();
            assert!((140..260).contains(&sum), "{sum}");
        }
        assert!(found.iter().all(|(counts, total)| *total == 6 && counts.iter().sum::<u32>() == 6));
    }

    #[test]
    fn clusters_are_drawn_whole() {
        // Clusters {5, 1}, {4}, {2, 6, 3} are the places {4, 0}, {3}, {1, 5, 2}.
        let clusters = [0, 0, 1, 2, 2, 2];
        for (counts, total) in drawn(Scheme::Units { clusters: Some(&clusters), strata: None }) {
            assert_eq!(counts[4], counts[0]);
            assert!(counts[1] == counts[5] && counts[1] == counts[2]);
            assert_eq!(counts[0] + counts[3] + counts[1], 3);
            assert_eq!(total, counts.iter().sum::<u32>() as usize);
        }
    }

    #[test]
    fn strata_keep_their_sizes() {
        let strata = [0, 1, 0, 1, 0, 1];
        for (counts, total) in drawn(Scheme::Units { clusters: None, strata: Some(&strata) }) {
            assert_eq!((counts[..3].iter().sum::<u32>(), counts[3..].iter().sum::<u32>(), total), (3, 3, 6));
        }
    }

    #[test]
    fn blocks_are_neighbours_on_a_circle() {
        let design = Design::new(&VALUES, Scheme::Blocks(3)).unwrap();
        let Kind::Blocks { places, .. } = &design.kind else { panic!("blocks") };
        assert_eq!(places, &[4, 0, 3, 1, 5, 2]);
        let pairs: std::collections::HashSet<Vec<u32>> =
            drawn(Scheme::Blocks(3)).into_iter().map(|(counts, _)| counts).collect();
        // Two of six blocks, in either order: at most 21 different resamples, and 200 draws see nearly all.
        assert!((15..=21).contains(&pairs.len()), "{}", pairs.len());
    }

    #[test]
    fn labels_that_make_no_sense_are_refused() {
        let of = |clusters, strata| Design::new(&VALUES, Scheme::Units { clusters, strata }).unwrap_err();
        let name = "labels of clusters";
        assert_eq!(of(Some(&[0, 1]), None), StatsError::Labels { name, found: 2, needed: 6 });
        let far = of(Some(&[0, 0, 1, 1, 2, 6]), None);
        assert_eq!(far, StatsError::LabelRange { name, label: 6, needed: 6 });
        let mixed = of(Some(&[0, 0, 1, 1, 2, 2]), Some(&[0, 1, 0, 0, 1, 1]));
        assert_eq!(mixed, StatsError::Straddling { cluster: 0 });
        assert_eq!(of(Some(&[0; 6]), None), StatsError::ThinStratum { stratum: 0, found: 1 });
        let long = Design::new(&VALUES, Scheme::Blocks(4)).unwrap_err();
        assert_eq!(long, StatsError::Block { length: 4, count: 6 });
    }

    #[test]
    fn many_values_are_dealt_to_groups_that_hold_each_once() {
        let values: Vec<f64> = (0..1000_u32).map(f64::from).collect();
        let units = Design::new(&values, Scheme::Plain).unwrap().jackknife_units(100, 3, 4);
        let mut all: Vec<u32> = units[0].concat();
        all.sort_unstable();
        assert_eq!((units[0].len(), all), (100, (0..1000).collect::<Vec<u32>>()));
    }
}
