use crate::{LockKind, Strategy};

/// How packets get from the dispatcher to the workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Worker threads, at least 1.
    pub workers: usize,
    /// Packets a queue can hold, at least 1; a worker draws half as many at once without queues.
    pub depth: usize,
    /// The lock of each queue, for the strategies that take one.
    pub lock: Option<LockKind>,
    /// Who takes what.
    pub strategy: Strategy,
    /// CPUs: the dispatcher, where there is one, gets the first, the workers the following ones, again from
    /// the start when they are used up. Empty: the system places threads.
    pub cpus: Vec<usize>,
}
