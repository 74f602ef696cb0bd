use std::sync::Arc;

use super::hold::Hold;
use super::leaf::Leaf;

/// A hold on a run by its groups, for a thread of its own: it meters the run and ends it without waiting for
/// anybody. The files are open by then, and none of the steps takes longer for a tree that forks.
#[derive(Debug, Default, Clone)]
pub struct Grip {
    /// Version 1, and the group that all leaves are in.
    pub(super) residents: Arc<Hold>,
    pub(super) leaf: Option<Arc<Hold>>,
}

impl Grip {
    fn of_leaf_first<T>(&self, read: impl Fn(&Hold) -> Option<T>) -> Option<T> {
        self.leaf.as_ref().and_then(|leaf| read(leaf)).or_else(|| read(&self.residents))
    }

    /// The same on the run in a leaf.
    #[must_use]
    pub fn on(&self, leaf: Option<&Leaf>) -> Self {
        Self { residents: Arc::clone(&self.residents), leaf: leaf.map(Leaf::hold) }
    }

    /// CPU time of the groups so far, residents included [ns].
    #[must_use]
    pub fn usage_ns(&self) -> Option<u64> {
        self.of_leaf_first(Hold::usage_ns)
    }

    /// Memory charged to the run by now [bytes].
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        self.of_leaf_first(|hold| hold.memory.as_ref()?.number())
    }

    /// How much of it is the kernel's own: processes that ended and wait for their burial, page tables,
    /// files and pipes [bytes].
    #[must_use]
    pub fn kernel_memory_bytes(&self) -> Option<u64> {
        self.of_leaf_first(Hold::kernel_memory_bytes)
    }

    /// Kills for want of memory so far, where a version 1 group counts them.
    #[must_use]
    pub fn oom_kills(&self) -> Option<u64> {
        self.residents.oom_control.as_ref()?.keyed("oom_kill")
    }

    /// Lets nothing be forked, gives what dies all of the CPU that a group can get, and ends every process
    /// that is there. Answers whether there was any.
    ///
    /// [`Groups::relax`](super::Groups::relax) undoes what would hold the next run.
    #[must_use]
    pub fn end(&self) -> bool {
        self.residents.take_shares();
        if let Some(leaf) = &self.leaf {
            leaf.take_shares();
        }
        self.leaf.as_ref().unwrap_or(&self.residents).end()
    }
}
