//! Moments of any range of groups in logarithmic time.

use crate::segment::moments::Both;

const LEAF: usize = 16;

/// Pairwise sums over blocks of groups; pairwise merging also keeps rounding errors small.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    groups: &'a [Both],
    /// First point of each group, then the number of points.
    starts: &'a [usize],
    levels: Vec<Vec<Both>>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(groups: &'a [Both], starts: &'a [usize]) -> Self {
        let join = |part: &[Both]| {
            part[1..].iter().fold(part[0], |mut sum, each| {
                sum.join(each);
                sum
            })
        };
        let mut levels = vec![groups.chunks(LEAF).map(join).collect::<Vec<_>>()];
        while let Some(last) = levels.last().filter(|last| last.len() > 1) {
            let next = last.chunks(2).map(join).collect();
            levels.push(next);
        }
        Self { groups, starts, levels }
    }

    pub(super) fn count(&self) -> usize {
        self.groups.len()
    }

    /// Points of the groups before `position`.
    pub(super) fn points_before(&self, position: usize) -> usize {
        self.starts[position]
    }

    /// The first group that begins at point `point` or later.
    pub(super) fn position_of(&self, point: usize) -> usize {
        self.starts.partition_point(|&start| start < point)
    }

    pub(super) fn group(&self, index: usize) -> &Both {
        &self.groups[index]
    }

    /// Moments of groups `from..to`.
    pub(super) fn range(&self, from: usize, to: usize) -> Both {
        let mut sum = Both::default();
        let mut at = from;
        while at < to {
            if at.is_multiple_of(LEAF) && at + LEAF <= to {
                let mut level = 0;
                let mut block = at / LEAF;
                while level + 1 < self.levels.len()
                    && block.is_multiple_of(2)
                    && at + (LEAF << (level + 1)) <= to
                {
                    level += 1;
                    block /= 2;
                }
                sum.join(&self.levels[level][block]);
                at += LEAF << level;
            } else {
                sum.join(&self.groups[at]);
                at += 1;
            }
        }
        sum
    }
}
