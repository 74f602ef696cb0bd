//! The golden table of checksums, for tests.

use crate::{Distribution, End, Load};

/// Every row: what to process, and the sum of its fingerprints.
pub(crate) fn checksums() -> Vec<(Load, u64)> {
    let table = include_str!("../tests/golden/correctness-checksums.csv");
    let rows: Vec<(Load, u64)> = table.lines().skip(1).map(row).collect();
    assert_eq!(rows.len(), 178);
    rows
}

fn row(line: &str) -> (Load, u64) {
    let fields: Vec<&str> = line.trim().split(',').collect();
    let number = |place: usize| -> u64 { fields[place].parse().unwrap() };
    let load = Load {
        sources: u32::try_from(number(1)).unwrap(),
        mean: u32::try_from(number(2)).unwrap(),
        distribution: if fields[3] == "t" { Distribution::Uniform } else { Distribution::Exponential },
        trial: number(4),
        end: End::Packets(number(0)),
    };
    (load, number(5))
}
