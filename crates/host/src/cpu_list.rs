use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Largest CPU number accepted: Linux builds for at most 8192 CPUs, and a damaged file must not
/// make us allocate a range up to 2^32.
const LARGEST_CPU: u32 = 65_535;

/// A set of CPU (or memory node) numbers, written as the kernel does: `0-3,8,10-11`.
///
/// ```
/// use steelyard_host::CpuSet;
/// let set: CpuSet = "0-3,8".parse()?;
/// assert_eq!(set.len(), 5);
/// assert_eq!(set.to_string(), "0-3,8");
/// # Ok::<(), steelyard_host::CpuListError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuSet(BTreeSet<u32>);

/// Why a text is not a CPU list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` in the CPU list `{list}` is not {expected}")]
pub struct CpuListError {
    list: String,
    found: String,
    expected: &'static str,
}

impl CpuSet {
    /// Members in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a CPU is a member.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// Smallest member.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }

    /// Members of both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.0.intersection(&other.0).copied().collect()
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(members: I) -> Self {
        Self(members.into_iter().collect())
    }
}

impl FromStr for CpuSet {
    type Err = CpuListError;

    /// Reads `0-3,8`, also with a stride as `0-31:2/4` (documented for kernel parameters: the first
    /// 2 of every 4). An empty text is the empty set.
    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let mut members = BTreeSet::new();
        for part in text.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let problem = |expected| CpuListError { list: shortened(text), found: shortened(part), expected };
            let (range, stride) = match part.split_once(':') {
                Some((range, stride)) => (range, Some(stride)),
                None => (part, None),
            };
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            let low: u32 = low.trim().parse().map_err(|_| problem("a number or a range"))?;
            let high: u32 = high.trim().parse().map_err(|_| problem("a number or a range"))?;
            if low > high {
                return Err(problem("an ascending range"));
            }
            if high > LARGEST_CPU {
                return Err(problem("below 65536"));
            }
            let (used, group) = match stride {
                None => (1, 1),
                Some(stride) => parse_stride(stride).ok_or_else(|| problem("a stride `used/group`"))?,
            };
            members.extend((low..=high).filter(|cpu| (cpu - low) % group < used));
        }
        Ok(Self(members))
    }
}

fn parse_stride(text: &str) -> Option<(u32, u32)> {
    let (used, group) = text.split_once('/')?;
    let (used, group) = (used.trim().parse().ok()?, group.trim().parse().ok()?);
    (used >= 1 && used <= group).then_some((used, group))
}

fn shortened(text: &str) -> String {
    text.trim().chars().take(60).collect()
}

impl fmt::Display for CpuSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut members = self.iter().peekable();
        let mut separator = "";
        while let Some(low) = members.next() {
            let mut high = low;
            while members.peek() == Some(&(high + 1)) {
                high += 1;
                members.next();
            }
            if low == high {
                write!(formatter, "{separator}{low}")?;
            } else {
                write!(formatter, "{separator}{low}-{high}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn members(text: &str) -> Vec<u32> {
        text.parse::<CpuSet>().unwrap().iter().collect()
    }

    #[test]
    fn lists_ranges_and_strides_are_read() {
        assert_eq!(members("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(members(""), [] as [u32; 0]);
        assert_eq!(members("0-7:2/4"), [0, 1, 4, 5]);
        assert_eq!(members(" 2 , 1"), [1, 2]);
    }

    #[test]
    fn damaged_lists_are_refused_with_the_part() {
        for (text, part) in [
            ("0-x", "0-x"),
            ("3-1", "3-1"),
            ("0-4294967295", "0-4294967295"),
            ("0-3:0/0", "0-3:0/0"),
            ("-1", "-1"),
        ] {
            let error = text.parse::<CpuSet>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    proptest! {
        #[test]
        fn writing_and_reading_is_the_identity(set in proptest::collection::btree_set(0u32..2000, 0..80)) {
            let set: CpuSet = set.into_iter().collect();
            prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}") {
            let _ = text.parse::<CpuSet>();
        }

        #[test]
        fn no_list_like_text_makes_it_panic(text in "[0-9,:/ -]{0,30}") {
            let _ = text.parse::<CpuSet>();
        }
    }
}
