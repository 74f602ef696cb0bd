use std::thread::ScopedJoinHandle;

/// Waits for a thread and passes its panic on.
pub(crate) fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
