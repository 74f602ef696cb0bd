use std::os::fd::BorrowedFd;

/// How a caller reaches into a batch in flight.
pub trait Control {
    /// Becomes readable when there is something to say; `None` when there never is.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Called when the descriptor is readable. Says whether the batch has to end.
    fn is_cancelled(&mut self) -> bool;
}

/// A caller that never interrupts.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoControl;

impl Control for NoControl {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn is_cancelled(&mut self) -> bool {
        false
    }
}
